"""Programs that fit linear models, each with its best settings, one file each."""
