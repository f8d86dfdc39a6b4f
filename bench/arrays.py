"""Writes arrays as NumPy does, without NumPy."""
import pathlib


def write_array(path, element, shape, content):
    """Writes a .npy file. `element`: its type, such as "|u1". `content`: bytes, the last index fastest."""
    header = f"{{'descr': '{element}', 'fortran_order': False, 'shape': {shape}, }}"
    header += ' ' * (63 - (10 + len(header)) % 64) + '\n'
    pathlib.Path(path).write_bytes(b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') + header.encode() + content)
