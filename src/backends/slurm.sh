# Gryphus: Slurm's commands, the shell half of slurm.ts, sourced by jobmanager.sh.
QUEUE_HEADING='COMMENT[ARRAY_TASK_ID]'
PARALLEL_SUBMITS=${GRYPHUS_SUBMITS:-8}
SLURM_USER=$(id -un)

backend_start() { :; }
backend_version() { bounded 20 sbatch --version; }
wait_for_event() { tick; }

backend_submit_all() { in_parallel "$1" "$PARALLEL_SUBMITS" submit_one; }

# The job's directory is the working directory: the accounting shows it even where it does not keep comments.
backend_submit() { # $1 key, $2 submission, then our options
  key=$1 n=$2
  shift 2
  # Our options come last and so win over the user's.
  ID=$(bounded 60 sbatch "$@" --parsable "--comment=$TAG" "--chdir=$ROOT/jobs/$key" \
    --output=/dev/null --error=/dev/null --input=none "$BIN/slurm-job.sh" "$BIN/wrapper.sh" "$ROOT" "$key" "$n")
}

# The elements share the group's comment and directory; an index must be below MaxArraySize.
backend_submit_array() { # $1 tag, $2 how many, then our options
  tag=$1 count=$2
  shift 2
  ID=$(bounded 60 sbatch "$@" --parsable "--array=1-$count" "--comment=$tag" "--chdir=$ROOT/groups/$tag" \
    --output=/dev/null --error=/dev/null --input=none "$BIN/slurm-job.sh" "$BIN/wrapper.sh" "$ROOT" "$tag" array)
}
find_array_limit() {
  ARRAY_LIMIT=$(bounded 20 scontrol show config 2>/dev/null </dev/null | LC_ALL=C awk '$1 == "MaxArraySize" { print $3 - 1 }')
  ARRAY_LIMIT=${ARRAY_LIMIT:-1000}
}
backend_elements() { # $1 the answer
  case ${1%%;*} in *[!0-9]*) ;; *) BEFORE=${1%%;*}_ FIRST=1 ;; esac
}

# With the heading, so that an empty answer cannot pass for an empty queue. -t all includes recently ended jobs.
backend_queue() {
  listing=$(bounded 30 squeue -u "$SLURM_USER" -t all -r -o '%k[%K] %i %T|%N|%r') || return
  printf '%s\n' "$listing"
  case $listing in *launch[_\ ]failed[_\ ]requeued[_\ ]held*) release_failed_launches "$listing" ;; esac
}
# After a node's prolog failed, Slurm holds the job until its user releases it, although another node would run it.
# Slurm itself gives a job up that failed to start too often (JobHoldMaxRequeue).
release_failed_launches() { # $1 the queue's answer
  [ -z "$(find "$T/released" -mmin -1 2>/dev/null)" ] || return 0
  : >|"$T/released"
  # shellcheck disable=SC2046 # ids have no blanks
  set -- $(printf '%s\n' "$1" | LC_ALL=C awk -v "prefix=$PREFIX" '
    index($1, prefix) == 1 && /launch[ _]failed[ _]requeued[ _]held/ && n++ < 500 { print $2 }')
  [ $# -eq 0 ] || bounded 30 scontrol release "$@" >/dev/null 2>&1 || :
}

backend_account() { # ids
  list=$(printf '%s,' "$@")
  answer=$(bounded 30 sacct -n -P -X -D -j "${list%,}" -o JobID,State,ExitCode,Start,End,NodeList,WorkDir) || return
  printf '%s\n' "$answer" | LC_ALL=C awk -F '|' '{ index_ = $1; print $0 (sub(/.*_/, "", index_) ? "[" index_ "]" : "") }'
}

# Cores in all partitions: allocated/idle/other/total.
backend_capacity() { bounded 10 sinfo -h -o %C; }

backend_cancel() { # $1 how, $2 tags
  answer=$(bounded 30 squeue -u "$SLURM_USER" -r -o '%k[%K] %i') || return
  # shellcheck disable=SC2046 # ids have no blanks
  set -- $(printf '%s\n' "$answer" | elements | LC_ALL=C awk -v "heading=$QUEUE_HEADING" -v "tags=$2" '
    BEGIN { n = split(tags, list, " "); for (i = 1; i <= n; i++) ours[list[i]] = 1 }
    NR == 1 && $1 != heading { exit }
    $1 in ours { print $2 }')
  [ $# -eq 0 ] || bounded 60 scancel "$@"
}

backend_accounting() { bounded 20 sacct -n -X -S now >/dev/null && say 'sacct answers'; }
backend_queues() { bounded 20 sinfo -h -o %R; }
# Prints the partition's line, or nothing if no such partition takes jobs.
backend_has() {
  line=$(bounded 20 sinfo -h -p "$1" -o '%P is %a, time limit %l' | head -n 1)
  case $line in
    *' is up, '*) say "$line" ;;
    *) say "${line:-there is no partition $1}" >&2 ;;
  esac
}
