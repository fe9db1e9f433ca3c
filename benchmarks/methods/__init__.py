"""Methods in docs/methods.md, and their descriptions."""

from .roster import ROSTER as ROSTER
from .roster import Entry as Entry
from .texts import TEXTS as TEXTS
from .texts import Text as Text
