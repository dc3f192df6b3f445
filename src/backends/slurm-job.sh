#!/bin/sh
# Gryphus: what Slurm runs. It sends TERM and KILL to all processes of a job, other signals to this one alone.
exec /bin/sh "$1" "$2" "$3" "$4" 'HUP INT QUIT USR1 USR2 XCPU' "${SLURM_JOB_ID:--}"
