"""Local training compared with synchronous training at equal tokens."""
