# Gryphus: the commands of OpenPBS and PBS Pro, the shell half of pbs.ts, sourced by jobmanager.sh.
# shellcheck source=/dev/null
. "$BIN/pbs-family.sh"

backend_version() { bounded 20 qsub --version; }

# The name is the tag because qselect and qstat show it. -f: without qsub's daemon, which could submit later.
backend_submit() { # $1 key, $2 submission, then our options
  # shellcheck disable=SC2016 # for the script
  job_script "$1" "$2" '${PBS_JOBID:--}' '#PBS -S /bin/sh' || return
  shift 2
  # Our options come last and so win over the user's. A job that may not be rerun ends when its node dies.
  ID=$(cd / && bounded 60 qsub -f "$@" -N "$TAG" -r n -S /bin/sh -j oe -o /dev/null -e /dev/null -m n "$SCRIPT" </dev/null)
}

# An element has its index in its id, 58[3].server. Arrays must be rerunnable: an element may start again after its node
# died, but then it finds its lock and leaves.
backend_submit_array() { # $1 tag, $2 how many, then our options
  # shellcheck disable=SC2016 # for the script
  group_script "$1" '$PBS_ARRAY_INDEX' '${PBS_JOBID:--}' '#PBS -S /bin/sh' || return
  tag=$1 count=$2
  shift 2
  ID=$(cd / && bounded 60 qsub -f "$@" -N "$tag" -J "1-$count" -r y -S /bin/sh -j oe -o /dev/null -e /dev/null -m n "$SCRIPT" </dev/null)
}
find_array_limit() {
  ARRAY_LIMIT=$(bounded 20 qstat -B -f 2>/dev/null </dev/null | LC_ALL=C awk '$1 == "max_array_size" { print $3 }')
  ARRAY_LIMIT=${ARRAY_LIMIT:-1000}
}
backend_elements() { # $1 the answer
  case $1 in *'[]'*) BEFORE="${1%%\[*}[" FIRST=1 AFTER="]${1##*\]}" ;; esac
}

# Only live jobs: with -x, a server without history shows none. An empty answer is trusted only if the server answers.
backend_queue() {
  bounded 30 qstat -t -f >|"$T/qstat" </dev/null || return
  if IFS= read -r line <"$T/qstat"; then
    case $line in 'Job Id: '*) ;; *) say "$line" && return ;; esac
  else
    case $(bounded 30 qstat -B -f </dev/null) in 'Server: '*) ;; *) return 1 ;; esac
  fi
  say "$QUEUE_HEADING"
  jobs_of "$T/qstat" gryphus.
}

# Without history the answer is empty. Unknown ids set the status to 153 but do not suppress the other lines.
backend_account() { # ids
  bounded 60 qstat -x -f "$@" >|"$T/history" 2>/dev/null </dev/null
  case $? in 0 | 153 | 35) ;; *) return 1 ;; esac
  jobs_of "$T/history" gryphus.
}

# The server itself sends TERM and, 10 s later, KILL; a job still there after that has lost its node, or its server gave
# up.
backend_cancel() { # $1 how, $2 tags
  bounded 30 qstat -t -f >|"$T/qstat" </dev/null || return
  delete_jobs "$1" "$2" -W force
}
# PBSE numbers modulo 256: 153 unknown, 35 finished, 168 exiting.
gone_or_going() { case $1 in 153 | 35 | 168) ;; *) return 1 ;; esac }

# Free cores, and all cores, of hosts that take jobs.
backend_capacity() {
  bounded 20 pbsnodes -a | LC_ALL=C awk '
    function host() { if (up) { all += cores; free += cores - used }; up = cores = used = 0 }
    /^[^ \t]/ { host() }
    $1 == "state" { up = $3 !~ /offline|down|unknown|stale/ }
    $1 == "resources_available.ncpus" { cores = $3 }
    $1 == "resources_assigned.ncpus" { used = $3 }
    END { host(); if (NR) printf "%d %d\n", free, all }'
}
backend_accounting() { bounded 20 qstat -B -f | grep 'job_history_enable = True' >/dev/null && say 'the server keeps a history'; }
backend_queues() { bounded 20 qstat -Q -f | sed -n 's/^Queue: *//p'; }
backend_has() { bounded 20 qstat -Q "$1" >/dev/null && say "$1 is there"; }
