# Written by srun: the command of its arguments runs once for each task of the step.
case ${1-} in
  /*) ;;
  # Where the job does not run in place, a program that was sent is in its directory.
  */*) if [ ! -e "$1" ]; then program=./${1##*/}; shift; set -- "$program" "$@"; fi ;;
esac

# Slurm's own, or for several nodes of the pool that of `gryphus compat install`.
if [ -n "${SLURMD_NODENAME-}" ] || [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ]; then eval "exec srun $step -- \"\$@\""; fi

label=
bad=
options() {
  for word; do
    case $word in
      -l | --label) label=yes ;;
      -K0 | --kill-on-bad-exit=0) ;;
      -K* | --kill-on-bad-exit*) bad=kill ;;
      --mpi=none) ;;
      --mpi=*) echo "srun: error: $word: this job does not run in Slurm" >&2; exit 1 ;;
    esac
  done
}
eval "options $step"

count=${SLURM_NTASKS:-1}
width=$((count - 1))
width=${#width}
export SLURM_NTASKS="$count" SLURM_NPROCS="$count" SLURM_NODEID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=1
exec 3>&1 4>&2 5<&0
if [ -n "$bad" ] && [ -n "$label" ]; then
  echo 'srun: error: --kill-on-bad-exit with --label: this job does not run in Slurm' >&2
  exit 1
fi

# Each task reads a standard input file from its beginning.
task() { exec "$@" </dev/fd/5 3>&- 4>&- 5<&- 6>&- 7>&-; }

# A line at a time, as it comes.
prefixed() {
  while IFS= read -r line || [ -n "$line" ]; do printf "%${width}d: %s\n" "$SLURM_PROCID" "$line"; done
}

# The shell would report a signal itself, where it waits.
labelled() {
  status=$({ { { (task "$@") & wait $! 2>/dev/null; echo $? >&6; } 2>&1 >&7 | prefixed >&4; } 7>&1 | prefixed >&3; } 6>&1)
  exit "$status"
}

rank=0
tasks=
while [ "$rank" -lt "$count" ]; do
  export SLURM_PROCID="$rank" SLURM_LOCALID="$rank"
  if [ -n "$label" ]; then (labelled "$@") & else (task "$@") & fi
  tasks="$tasks $!"
  rank=$((rank + 1))
done

# Whichever ends badly first ends the others; how each ended is collected below.
watch() {
  open=$tasks
  while [ -n "$open" ]; do
    left=
    for task in $open; do
      if kill -0 "$task" 2>/dev/null; then left="$left $task"; continue; fi
      wait "$task" 2>/dev/null
      status=$?
      eval "ended_$task=$status"
      if [ "$status" -ne 0 ]; then kill $tasks 2>/dev/null; open=; return; fi
    done
    open=$left
    [ -z "$open" ] || sleep 1
  done
}
[ -z "$bad" ] || watch

worst=0
rank=0
for task in $tasks; do
  # A process is waited for once.
  eval "status=\${ended_$task-}"
  if [ -z "$status" ]; then wait "$task" 2>/dev/null; status=$?; fi
  case $status in
    134) how=Aborted ;;
    137) how=Killed ;;
    139) how='Segmentation fault' ;;
    143) how=Terminated ;;
    *) how="Exited with exit code $status" ;;
  esac
  [ "$status" -eq 0 ] || echo "srun: error: $(uname -n): task $rank: $how" >&2
  [ "$status" -le "$worst" ] || worst=$status
  rank=$((rank + 1))
done
exit "$worst"
