# Gryphus: HTCondor's commands, the shell half of condor.ts, sourced by jobmanager.sh.
QUEUE_HEADING=TAG
PARALLEL_SUBMITS=${GRYPHUS_SUBMITS:-8}
CONDOR_USER=$(id -un)
# gryphus.sh sets these first: another Gryphus has the same commands under other names.
SUBMIT=condor_submit QUEUE=condor_q REMOVE=condor_rm HISTORY=condor_history
# HTCondor signals only a job's first process.
FORWARDED='TERM HUP INT QUIT USR1 USR2 XCPU'
REMOVED_FOR=RemoveReason
# HTCondor starts a parallel job on each of its machines.
ON_NODES=condor-node.sh

backend_start() { :; }
backend_version() { bounded 20 condor_version; }
wait_for_event() { tick; }
backend_submit_all() { in_parallel "$1" "$PARALLEL_SUBMITS" submit_one; }

argument() { # $1 as one word inside the quotes of a submit file's `arguments`
  printf %s "$1" | sed "s/'/''/g; s/\"/\"\"/g; s/\\$/\$(DOLLAR)/g; 1s/^/'/; \$s/\$/'/"
}

# Words before `--` are lines of the submit description; those after it are the user's options for the command.
backend_submit() { # $1 key, $2 submission, then our options
  file=$ROOT/jobs/$1/submit.$2
  key=$1 n=$2
  shift 2
  submit_file "$file" "$key" "$n" queue "$@"
}
# Each proc gets a tag of its own, like any other job.
backend_submit_array() { # $1 tag, $2 how many, then our options
  file=$ROOT/groups/$1/submit
  rows="queue GryphusOf, GryphusN from (
$(sed '$d' "$ROOT/groups/$1/map")
)"
  shift 2
  # shellcheck disable=SC2016 # HTCondor's macros
  submit_file "$file" '$(GryphusOf)' '$(GryphusN)' "$rows" "$@"
}
find_array_limit() {
  ARRAY_LIMIT=$(bounded 20 condor_config_val MAX_JOBS_PER_SUBMISSION 2>/dev/null </dev/null)
  case $ARRAY_LIMIT in '' | *[!0-9]*) ARRAY_LIMIT=10000 ;; esac
}
backend_elements() { # $1 the answer
  case $1 in [0-9]*.0' - '*) BEFORE=${1%%.*}. FIRST=0 ;; esac
}
# A pool without a dedicated scheduler takes a parallel job, and lets it wait for ever.
has_dedicated() {
  there=$(bounded 20 condor_status -constraint 'DedicatedScheduler =!= undefined' -limit 1 -af Machine </dev/null) || return
  [ -z "$there" ] || return 0
  say 'ERROR: No machine of this pool has a DedicatedScheduler, so it runs no parallel jobs.' >&2
  return 1
}
submit_file() { # $1 file, $2 key, $3 submission, $4 the queue statement, then our options
  file=$1 key=$2 n=$3 rows=$4
  shift 4
  start=$(argument "$BIN/wrapper.sh")
  if [ "$1" = 'universe = parallel' ] && [ -n "$ON_NODES" ]; then
    has_dedicated || return
    start="$(argument "$BIN/$ON_NODES") \$(ranks) $start"
  fi
  {
    say "arguments = \"$start $(argument "$ROOT") $key $n '$FORWARDED' \$(ClusterId).\$(ProcId)\""
    # A job's environment is empty except for what it is given here.
    say "environment = \"PATH=/usr/local/bin:/usr/bin:/bin HOME=$(argument "$HOME") USER=$(argument "$CONDOR_USER") LOGNAME=$(argument "$CONDOR_USER")\""
    while [ "$1" != -- ]; do say "$1" && shift; done
    shift
    say "+GryphusKey = \"gryphus.$key.$n\""
    say "$rows"
  } >|"$file"
  # shellcheck disable=SC2086 # a command and its first word
  ID=$(cd / && bounded 60 $SUBMIT -terse "$@" "$file" </dev/null)
}

# Nobody tells why a parallel job waits.
WORDS='ifThenElse(JobStatus == 5, HoldReason, ifThenElse(JobUniverse == 11, strcat("waits for ", MaxHosts, " machines at once"), LastRejMatchReason))'

# An empty answer is trusted only if the schedd can also give its totals.
backend_queue() {
  # shellcheck disable=SC2086 # a command and its first word
  bounded 30 $QUEUE -constraint 'regexp("^gryphus[.]", GryphusKey)' -af GryphusKey ClusterId ProcId JobStatus \
    NumJobStarts HoldReasonCode HoldReasonSubCode RemoteHost "$WORDS" \
    >|"$T/condor_q" </dev/null || return
  if IFS= read -r line <"$T/condor_q"; then
    case $line in gryphus.*) ;; *) say "$line" && return ;; esac
  else
    # shellcheck disable=SC2086
    case $(bounded 30 $QUEUE -totals </dev/null) in *'Total for '*) ;; *) return 1 ;; esac
  fi
  say "$QUEUE_HEADING"
  LC_ALL=C awk 'index($1, "gryphus.") == 1 { tag = $1; id = $2 "." $3; sub(/^[^ ]+ [^ ]+ [^ ]+ /, ""); print tag " " id " " $0 }' "$T/condor_q"
}

backend_account() { # ids
  wanted=$(for id; do printf '|| (ClusterId == %s && ProcId == %s)' "${id%.*}" "${id#*.}"; done)
  # shellcheck disable=SC2086
  bounded 60 $HISTORY -constraint "${wanted#|| }" -limit "$#" -af ClusterId ProcId GryphusKey JobStatus \
    LastJobStatus ExitBySignal ExitSignal ExitCode "$REMOVED_FOR" </dev/null
}

# The pool itself sends TERM and, after job_max_vacate_time, KILL. A job that is already gone is not an error, but a
# schedd that does not answer ends with the same words after its own. -forcex forgets a removed job whose host never
# reports its end.
backend_cancel() { # $1 how, $2 tags
  # shellcheck disable=SC2086 # tags have no blanks
  list=$(printf '%s,' $2)
  list="stringListMember(GryphusKey, \"${list%,}\")"
  # shellcheck disable=SC2086 # a command and its first word
  [ "$1" != FORCE ] || bounded 60 $REMOVE -forcex -constraint "$list" >/dev/null 2>&1 </dev/null
  # shellcheck disable=SC2086
  words=$(bounded 60 $REMOVE -constraint "$list" 2>&1 </dev/null) && return
  case ${words#"$NL"} in "Couldn't find/remove all jobs matching"*) return 0 ;; esac
  say "$words" >&2
  return 1
}

# Unclaimed cores, and all cores. The Cpus of a partitionable slot are those not yet claimed.
backend_capacity() {
  bounded 20 condor_status -af Cpus State >|"$T/status" </dev/null || return
  LC_ALL=C awk '$1 ~ /^[0-9]+$/ { all += $1; if ($2 == "Unclaimed") free += $1 } END { if (NR) printf "%d %d\n", free, all }' "$T/status"
}
