"""Stream <-> bytes. The format is specified in docs/wire-format.md."""

from .decoding import decode as decode
from .decoding import decode_into as decode_into
from .decoding import message_length as message_length
from .decoding import numbers as numbers
from .decoding import verify as verify
from .encoding import bare_header as bare_header
from .encoding import encode as encode
from .header import Header as Header
from .header import Tag as Tag
from .sizes import least_nbytes as least_nbytes
from .sizes import likely_nbytes as likely_nbytes
from .sizes import most_nbytes as most_nbytes
from .sizes import numbers_nbytes as numbers_nbytes
