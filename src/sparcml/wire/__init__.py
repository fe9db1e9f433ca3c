"""Stream <-> bytes. The format is specified in docs/wire-format.md."""

from .codec import bare_header as bare_header
from .codec import decode as decode
from .codec import encode as encode
from .codec import message_length as message_length
from .codec import verify as verify
from .header import Header as Header
from .header import Tag as Tag
from .sizes import least_nbytes as least_nbytes
from .sizes import likely_nbytes as likely_nbytes
from .sizes import most_nbytes as most_nbytes
