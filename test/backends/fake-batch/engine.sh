# A batch system's memory and its one host: jobs that are really run. Read by the commands beside it.
#   $FAKE_BATCH/jobs/ID/  script or argv, and files of one line each: name, state (queued held running ended), reason,
#                         walltime, removed (who), pid, exit (a wait status), started, ended; ID is a number
export LC_ALL=C
JOBS=$FAKE_BATCH/jobs
ENGINE=${0%/*}
mkdir -p "$JOBS" "$FAKE_BATCH/ids" "$FAKE_BATCH/making"

put() { printf '%s\n' "$2" >"$1.new.$$" && mv "$1.new.$$" "$1"; }
get() { # $1 file: sets VALUE, empty where there is none
  VALUE=
  [ -f "$1" ] && IFS= read -r VALUE <"$1"
  return 0
}

new_job() { # sets ID, JOB: a directory that nobody lists before publish_job
  ID=1
  [ -f "$FAKE_BATCH/next" ] && read -r ID <"$FAKE_BATCH/next"
  while ! mkdir "$FAKE_BATCH/ids/$ID" 2>/dev/null; do ID=$((ID + 1)); done
  put "$FAKE_BATCH/next" "$((ID + 1))"
  JOB=$FAKE_BATCH/making/$ID
  mkdir "$JOB"
  put "$JOB/state" queued
}
publish_job() {
  mv "$JOB" "$JOBS/$ID"
  setsid sh "$ENGINE/run.sh" "$ID" </dev/null >/dev/null 2>&1 &
}

each_job() { # $1 function, called with an ID, in the order of submission
  for id in $(ls "$JOBS" | sort -n); do "$1" "$id"; done
}

# Ends a job: one that waits never starts, one that runs is sent TERM (its session, or with SOFT_KILL=main its first process
# alone) and, a second later, KILL.
remove_job() { # $1 id, $2 by whom
  put "$JOBS/$1/removed" "$2"
  if mkdir "$JOBS/$1/started" 2>/dev/null; then
    put "$JOBS/$1/state" ended
    return
  fi
  get "$JOBS/$1/pid"
  [ -n "$VALUE" ] || return 0
  if [ "${SOFT_KILL-}" = main ]; then kill -TERM "$VALUE"; else pkill -TERM -s "$VALUE"; fi
  (
    sleep 1
    pkill -KILL -s "$VALUE"
  ) >/dev/null 2>&1 &
}

# The host answers nobody while the file `unreachable` is there: what runs cannot be ended, only forgotten.
out_of_reach() { # $1 id
  [ -e "$FAKE_BATCH/unreachable" ] || return 1
  get "$JOBS/$1/state"
  [ "$VALUE" = running ]
}
forget_job() { # $1 id, $2 by whom
  put "$JOBS/$1/removed" "$2"
  put "$JOBS/$1/exit" 9
  put "$JOBS/$1/state" ended
}
