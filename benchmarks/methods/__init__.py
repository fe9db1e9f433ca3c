"""The methods that docs/methods.md compares, and what it says of them."""

from .roster import ROSTER as ROSTER
from .roster import Entry as Entry
from .texts import TEXTS as TEXTS
from .texts import Text as Text
