# Gryphus: plain processes, at most so many at a time. The shell half of fork.ts, sourced by jobmanager.sh.
#   fork/queue/SEQ-KEY:N    waits, unless it is also in
#   fork/running/SEQ-KEY:N  a worker has it; its line: its process `PID PSTART BOOT HOST`, then the wrapper's number unless that
#                           is PID; until it runs, `@SLOT`
#   fork/running/SEQ-KEY:N@SLOT  the same, from the worker of an older version: it is in the queue no more, and its line is one
#                           word until it runs
#   fork/slot.SLOT          the worker's line in the same form; there are as many slots as jobs may run at once
# Workers need no JobManager: each runs one waiting job after another and ends when no job waits.
QUEUE_HEADING=TAG

backend_start() {
  mkdir -p fork/queue fork/running
  [ -n "${GRYPHUS_SLOTS-}" ] || GRYPHUS_SLOTS=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || GRYPHUS_SLOTS=1
  [ -p news ] || mkfifo news 2>/dev/null
  RESET=
  env --default-signal=INT,QUIT true 2>/dev/null && RESET=--default-signal=INT,QUIT
  # shellcheck source=/dev/null
  . "$BIN/fork-start.sh"
  START=''
  find_starter
  SEQUENCE=$(date +%s) PASS=0
  fork_repair
  fork_kick
}
backend_version() { echo "plain processes, $GRYPHUS_SLOTS at once"; }

# A wrapper on this machine writes into the pipe; the ticker wakes the read now and then, and ends with the JobManager.
wait_for_event() {
  if [ -z "${TICKER-}" ]; then
    if [ ! -p news ]; then
      tick
      return
    fi
    exec 5<>news
    (
      exec 2>/dev/null
      nap=
      trap 'kill "$nap"; exit' TERM
      start_of "$$"
      born=$PSTART
      while [ "$PSTART" = "$born" ]; do
        sleep 5 5>&- &
        nap=$!
        wait "$nap"
        echo >&5
        # Once the JobManager has ended, another process may have its number.
        start_of "$$"
      done
      echo >&5
    ) &
    TICKER=$!
    echo "$TICKER" >|"$T/ticker"
  fi
  IFS= read -r _ <&5
}

backend_submit_all() {
  for word in $1; do submit_one "$word"; done
  fork_kick
}
backend_submit() { # $1 key, $2 submission
  PASS=$((PASS + 1))
  ID=$((SEQUENCE * 1000000 + PASS))
  printf '%s\n' "$ID" >"fork/queue/$ID-$1:$2" || { rm -f "fork/queue/$ID-$1:$2" && return 1; }
}

# PSTART tells a process from a later one with the same number.
start_of() { # $1 pid: sets PSTART, empty if there is no such process
  PSTART='' line=''
  if [ -r /proc/self/stat ]; then
    IFS= read -r line <"/proc/$1/stat" || return
    # shellcheck disable=SC2086 # words of numbers
    set -- ${line##*) }
    case $1 in Z | X) ;; *) PSTART=${20} ;; esac
  else
    PSTART=$(ps -o lstart= -p "$1" | tr ' ' _)
  fi
} 2>/dev/null
lives() { # $1 pid, $2 pstart, $3 boot, $4 host; a process on another machine counts as alive
  [ -n "${4-}" ] || return 1
  if [ "$4" != "$HOST" ]; then
    # Another machine, or this one under the name that it had.
    [ "$BOOT" = - ] || [ "$3" = - ] || [ "$3" = "$BOOT" ] || ! disk_is_own
    return
  fi
  is_process "$@"
}
# Whether only one machine at a time can have this file system: what an earlier boot left in it is over, under whatever name.
disk_is_own() {
  [ -n "${DISK-}" ] || DISK=$(stat -f -c %T . 2>/dev/null) || DISK=unknown
  case $DISK in
    bcachefs | btrfs | ext2/ext3 | f2fs | jfs | nilfs | overlayfs | ramfs | reiserfs | tmpfs | xfs | zfs) ;;
    *) return 1 ;;
  esac
}
# Also after this machine got another name, as a boot has a number of its own.
is_process() { # the same words
  [ "$4" = "$HOST" ] || [ "$BOOT" != - ] || return
  [ "$3" = "$BOOT" ] && start_of "$1" && [ -n "$PSTART" ] && [ "$PSTART" = "$2" ]
}
# $1 file: sets CLAIM to its line; empty after a worker took the job, until the program starts. SLOT: the worker's until then.
claim_of() {
  CLAIM='' SLOT=''
  case $1 in *@*) SLOT=${1##*@} ;; esac
  IFS= read -r CLAIM <"$1"
  case $CLAIM in
    # Read while it was being overwritten.
    @*' '*) CLAIM='' ;;
    *' '*) ;;
    @*) SLOT=${CLAIM#@} CLAIM='' ;;
    *) CLAIM='' ;;
  esac
} 2>/dev/null
# Sets OWNER to a claim's words for the wrapper that had the lock; fails if something of its attempt may be alive. A lock without
# an owner is as old as the worker's slot.
owner_of() { # $1 key, $2 submission
  OWNER=''
  [ -d "jobs/$1/run.lock.$2" ] || return
  if IFS= read -r line <"jobs/$1/run.lock.$2/owner"; then
    for name in pid pstart boot host; do
      value=${line#*" $name="} && OWNER="$OWNER${OWNER:+ }${value%% *}"
    done
    # shellcheck disable=SC2086 # words
    ! lives $OWNER || return
  else
    [ -n "$SLOT" ] && IFS= read -r OWNER <"fork/slot.$SLOT" || return
    case $OWNER in *" $BOOT "*) return 1 ;; esac
  fi
  set +f
  ! grep -qsF "GRYPHUS_KEY=$1" /proc/[0-9]*/environ
}
# A worker that died at the very moment of its claim left no slot in it. Then it is given up when no worker is left.
taker_lives() {
  if [ -n "$SLOT" ]; then
    holder_lives "fork/slot.$SLOT"
    return
  fi
  slot=1
  while [ "$slot" -le "$GRYPHUS_SLOTS" ]; do
    holder_lives "fork/slot.$slot" && return
    slot=$((slot + 1))
  done
  return 1
}
holder_lives() { # $1 file with a line of the form above
  line=
  [ -f "$1" ] && IFS= read -r line <"$1"
  # shellcheck disable=SC2086 # words
  lives $line
}

# Starts a worker for each free slot while more jobs wait than workers were started.
fork_kick() {
  set +f
  set -- fork/queue/*
  set -f
  slot=1
  for file; do
    [ "$slot" -le "$GRYPHUS_SLOTS" ] || return 0
    [ ! -e "$file" ] || [ -e "fork/running/${file#fork/queue/}" ] || kick_next
  done
}
kick_next() {
  while [ "$slot" -le "$GRYPHUS_SLOTS" ] && holder_lives "fork/slot.$slot"; do slot=$((slot + 1)); done
  [ "$slot" -le "$GRYPHUS_SLOTS" ] || return 0
  rm -f "fork/slot.$slot"
  fork_detached sh "$BIN/fork-worker.sh" "$ROOT" "$BIN" "$slot" "$HOST" "$BOOT" "$RESET" "$START"
  slot=$((slot + 1))
}
fork_detached() {
  if [ -n "$SETSID" ]; then
    nohup setsid "$@" </dev/null >/dev/null 2>&1 &
  else
    nohup "$@" </dev/null >/dev/null 2>&1 &
  fi
}
SETSID=
command -v setsid >/dev/null && SETSID=1

# Gives back jobs that a worker took but can no longer start, and drops ended ones from the list, the claims last.
fork_repair() {
  set +f
  gone='' claims=''
  for file in fork/running/*; do
    [ -f "$file" ] || continue
    name=${file#fork/running/}
    name=${name%@*}
    word=${name#*-}
    claim_of "$file"
    # shellcheck disable=SC2086 # words
    if [ -n "$CLAIM" ] && lives $CLAIM; then continue; fi
    if [ -f "jobs/${word%:*}/exit" ] || [ ! -d "jobs/${word%:*}" ]; then
      if [ -z "$CLAIM" ] && taker_lives; then continue; fi
      gone="$gone fork/queue/$name" claims="$claims $file"
    elif [ -z "$CLAIM" ] && [ ! -e "jobs/${word%:*}/run.lock.${word##*:}" ] && ! taker_lives; then
      case $file in
        *@*) mv -f "$file" "fork/queue/$name" ;;
        *) rm -f "$file" ;;
      esac
    elif [ -z "$CLAIM" ] && ! taker_lives && owner_of "${word%:*}" "${word##*:}"; then
      # All were killed before the claim named the program.
      printf '%s\n' "$OWNER" >|"$file"
    fi
  done 2>/dev/null
  set -f
  # shellcheck disable=SC2086 # names without blanks
  [ -z "$gone" ] || rm -f $gone $claims
}

backend_queue() {
  fork_repair
  fork_kick
  set +f
  say "$QUEUE_HEADING"
  for file in fork/queue/*; do
    name=${file#fork/queue/}
    [ ! -e "fork/running/$name" ] || continue
    case $name in *-*:*) word=${name#*-} && say "gryphus.${word%:*}.${word##*:} ${name%%-*} PENDING" ;; esac
  done
  for file in fork/running/*; do
    name=${file#fork/running/}
    case $name in *-*:*) ;; *) continue ;; esac
    name=${name%@*}
    word=${name#*-}
    state=RUNNING
    claim_of "$file"
    # shellcheck disable=SC2086 # words
    if [ -n "$CLAIM" ] && ! lives $CLAIM; then
      [ ! -f "jobs/${word%:*}/exit" ] || continue
      state=VANISHED
      case $CLAIM in *" $BOOT "*) ;; *) state=NODE_FAIL ;; esac
    fi
    say "gryphus.${word%:*}.${word##*:} ${name%%-*} $state"
  done
}

backend_account() { return 1; }

backend_capacity() { # SLOTS BUSY
  slot=1 busy=0
  while [ "$slot" -le "$GRYPHUS_SLOTS" ]; do
    holder_lives "fork/slot.$slot" && busy=$((busy + 1))
    slot=$((slot + 1))
  done
  say "$GRYPHUS_SLOTS $busy"
}

backend_cancel() { # $1 how, $2 tags
  [ "$1" != FORCE ] || set -- KILL "$2"
  set +f
  for tag in $2; do
    word=${tag#gryphus.} && word=${word%.*}:${word##*.}
    rm -f fork/queue/*-"$word"
    for file in fork/running/*-"$word" fork/running/*-"$word"@*; do
      [ -f "$file" ] || continue
      turns=0
      claim_of "$file"
      while [ -z "$CLAIM" ] && [ "$turns" -lt 20 ] && [ -f "$file" ]; do
        sleep 0.1
        claim_of "$file"
        turns=$((turns + 1))
      done
      # shellcheck disable=SC2086 # words
      [ -z "$CLAIM" ] || fork_signal "$1" $CLAIM
      [ "$1" != KILL ] || fork_kill_escaped "${word%:*}"
    done
  done
  set -f
}
fork_signal() { # $1 signal, then the words of a claim
  [ -n "${5-}" ] && is_process "$2" "$3" "$4" "$5" || return
  # The wrapper notes it.
  [ "$1" = KILL ] || [ -z "${6-}" ] || kill "-$1" "$6"
  # It makes its own process group as its first step.
  kill "-$1" "-$2" || kill "-$1" "$2"
} 2>/dev/null
# Processes that left the job's process group still carry its key in their environment.
fork_kill_escaped() { # $1 key
  # shellcheck disable=SC2013 # paths without blanks
  for file in $(grep -l -s -a -F "GRYPHUS_KEY=$1" /proc/[0-9]*/environ 2>/dev/null); do
    pid=${file#/proc/}
    kill -KILL "${pid%/*}" 2>/dev/null
  done
}
