# Gryphus: Torque's commands, and Slurm's imitations of them, the shell half of torque.ts, sourced by jobmanager.sh.
# shellcheck source=/dev/null
. "$BIN/pbs-family.sh"

# Slurm's imitations have no -t, and their qstat cannot tell array elements apart.
ELEMENTS='' HOST_WORD=''
backend_start() { # Torque 2.5 prints its version in lower case, and has no -n
  case $(bounded 20 qsub --version 2>&1 </dev/null) in
    Version:*) ELEMENTS=-t HOST_WORD=-n ;;
    version:*) ELEMENTS=-t ;;
  esac
}

backend_version() {
  words=$(bounded 20 qsub --version 2>&1 </dev/null) || case $words in
    *'Unknown option'*) words="Torque's commands of $(bounded 20 sbatch --version)" || return ;;
    *) return 1 ;;
  esac
  printf '%s\n' "$words" | head -n 1
}

# Torque's own scheduler ignores how Moab and Maui are asked for a whole host: sets ALONE_THERE to its own option.
words_for_a_host() { case " $* " in *' x=NACCESSPOLICY:SINGLEJOB '*) ALONE_THERE=$HOST_WORD ;; *) ALONE_THERE= ;; esac; }

# Slurm's qsub writes its errors to standard output.
backend_submit() { # $1 key, $2 submission, then our options
  # shellcheck disable=SC2016 # for the script
  job_script "$1" "$2" '${PBS_JOBID:-${SLURM_JOB_ID:--}}' '#PBS -S /bin/sh' || return
  shift 2
  words_for_a_host "$@"
  # Our options come last and so win over the user's.
  # shellcheck disable=SC2086 # one word or none
  ID=$(cd / && bounded 60 qsub $ALONE_THERE "$@" -N "$TAG" -r n -j oe -o /dev/null -e /dev/null -m n "$SCRIPT" </dev/null) && return
  set -- "$?"
  say "$ID" >&2
  return "$1"
}

# An element's name ends in a hyphen and its index; its id has the index in brackets: 12[3].server.
backend_submit_array() { # $1 tag, $2 how many, then our options
  [ -n "$ELEMENTS" ] || { say 'qsub: submit error (no arrays here)' >&2 && return 1; }
  # shellcheck disable=SC2016 # for the script
  group_script "$1" '$PBS_ARRAYID' '${PBS_JOBID:--}' '#PBS -S /bin/sh' || return
  tag=$1 count=$2
  shift 2
  words_for_a_host "$@"
  # shellcheck disable=SC2086 # one word or none
  ID=$(cd / && bounded 60 qsub $ALONE_THERE "$@" -N "$tag" -t "1-$count" -r n -j oe -o /dev/null -e /dev/null -m n "$SCRIPT" </dev/null)
}
# Elements beyond idle_slot_limit (300 by default) enter the queue only when others have started.
find_array_limit() {
  ARRAY_LIMIT=$(bounded 20 qstat -B -f 2>/dev/null </dev/null | LC_ALL=C awk '
    BEGIN { most = 300 }
    ($1 == "max_job_array_size" || $1 == "idle_slot_limit") && $3 < most { most = $3 }
    END { print most }')
}
backend_elements() { # $1 the answer
  case $1 in *'[]'*) BEFORE="${1%%\[*}[" FIRST=1 AFTER="]${1##*\]}" ;; esac
}

# An empty answer is trusted only if the server also names its queues; Slurm's qstat gives it with a status of 153.
backend_queue() {
  bounded 30 qstat -f $ELEMENTS >|"$T/qstat" </dev/null
  set -- "$?"
  if IFS= read -r line <"$T/qstat"; then
    case $line in 'Job Id:'*) ;; *) say "$line" && return ;; esac
    [ "$1" -eq 0 ] || return "$1"
  else
    case $1 in 0 | 153) ;; *) return "$1" ;; esac
    case $(bounded 30 qstat -Q </dev/null) in Queue*) ;; *) return 1 ;; esac
  fi
  say "$QUEUE_HEADING"
  jobs_of "$T/qstat" gryphus.
}

backend_account() { return 1; }

backend_cancel() { # $1 how, $2 tags
  bounded 30 qstat -f $ELEMENTS >|"$T/qstat" </dev/null || [ ! -s "$T/qstat" ] || return
  delete_jobs "$1" "$2" -p
}
# 170: the job's state does not allow deletion. 1 without a message is how Slurm says that the job is over.
gone_or_going() { # $1 status
  case $1:$words in 153:* | 170:* | 1:) ;; *) return 1 ;; esac
}

# Free cores, and all cores, of hosts that take jobs: a job uses one core for each time that it is listed.
backend_capacity() {
  bounded 20 pbsnodes -a | LC_ALL=C awk '
    function host() { if (up) { all += cores; free += cores > used ? cores - used : 0 }; up = cores = used = 0 }
    /^[^ \t]/ { host() }
    $1 == "state" { up = $3 !~ /offline|down|unknown/ }
    $1 == "np" { cores = $3 }
    # `0/1.srv, 1/1.srv`, or `0-2,5/1.srv, 3/2.srv`.
    $1 == "jobs" {
      sub(/^[ \t]*jobs = /, "")
      count = split($0, job, ",")
      for (i = 1; i <= count; i++) {
        sub(/\/.*/, "", job[i])
        used += split(job[i], range, "-") == 2 ? range[2] - range[1] + 1 : 1
      }
    }
    END { host(); if (all) printf "%d %d\n", free, all }'
}
backend_queues() { bounded 20 qstat -Q -f | sed -n 's/^Queue: *//p'; }
# The status of qstat -q is meaningless, so its output is searched.
backend_has() { bounded 20 qstat -q | LC_ALL=C awk -v "queue=$1" '$1 == queue { print queue " is there"; exit }'; }
