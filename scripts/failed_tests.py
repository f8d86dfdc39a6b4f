#!/usr/bin/env python3
"""Repeats what the failed tests of a ctest run wrote, so that it stands at the end of a long output.

    scripts/failed_tests.py RESULTS.xml

RESULTS.xml is what `ctest --output-junit` writes. Of a long output the last lines are shown.
"""
import sys
import xml.etree.ElementTree

LINES = 60

for case in xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter('testcase'):
    if case.get('status') == 'fail':
        lines = case.findtext('system-out', '').splitlines()
        print(f'\n== {case.get("name")}', *lines[-LINES:], sep='\n')
