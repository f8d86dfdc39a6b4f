"""Starts a command in several processes, for the programs of this folder."""
import os


def launched(command, processes, options=()):
    """Returns the command that starts `command` in so many processes. `options`: of mpirun."""
    if processes == 1:
        return command
    return ['mpirun', '--oversubscribe', '--bind-to', 'none', '-np', str(processes), *options, *command]


def environment():
    """Returns this process's environment, in which mpirun also starts commands of root."""
    return {**os.environ, 'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
