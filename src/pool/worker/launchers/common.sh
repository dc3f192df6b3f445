# What both scripts do first: every node but the first waits until the job ends, which is when node 0 ends. `hosts`: all
# nodes, each with its number of ranks after a colon if $1 is `:`. The program runs in each node's own directory.
if [ "${_CONDOR_PROCNO:?}" != 0 ]; then
  # The shell's own word about that sleep does not belong in the job's error file.
  exec 2>/dev/null
  trap 'kill "$sleep" 2>/dev/null; exit 143' TERM
  while :; do
    sleep 86400 &
    sleep=$!
    wait "$sleep"
  done
fi
ranks=${GRYPHUS_RANKS_PER_NODE:-1}
hosts=
node=0
while [ "$node" -lt "$_CONDOR_NPROCS" ]; do
  hosts="$hosts${hosts:+,}node$node:$ranks"
  node=$((node + 1))
done
all=$((_CONDOR_NPROCS * ranks))
IN_PLACE='cd "$_CONDOR_JOB_IWD" && exec "$@"'
