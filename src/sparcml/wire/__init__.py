"""Messages: streams as bytes. The format is specified in docs/wire-format.md."""

from .decoding import auxiliary as auxiliary
from .decoding import code_of as code_of
from .decoding import decode as decode
from .decoding import decode_into as decode_into
from .decoding import message_length as message_length
from .decoding import quantizer_of as quantizer_of
from .decoding import verify as verify
from .encoding import encode as encode
from .encoding import encode_code as encode_code
from .encoding import header_only as header_only
from .header import ABSENT as ABSENT
from .header import Header as Header
from .header import Tag as Tag
from .sizes import auxiliary_nbytes as auxiliary_nbytes
from .sizes import expected_index_nbytes as expected_index_nbytes
from .sizes import expected_nbytes as expected_nbytes
from .sizes import max_nbytes as max_nbytes
from .sizes import min_nbytes as min_nbytes
