"""Environment variables by which a process knows that a launcher started it as a rank."""

# MPI launchers pass the number of ranks.
MPI_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS")

# Set by torchrun, and by scripts without torchrun too.
TORCH_NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
