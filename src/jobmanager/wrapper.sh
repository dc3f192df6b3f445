#!/bin/sh
# Gryphus: starts one attempt's program, at most once, and records how it ended.
#   wrapper.sh ROOT KEY N FORWARD [BATCH-ID [RESET [CLOCK]]]
# ROOT     the agent's directory at this site
# KEY, N   the attempt and the number of its submission; or a group's tag, which ends in .a, and an element's index
# FORWARD  names of signals, separated by blanks, that the batch system sends only to this process: they are forwarded
# RESET    set by a caller that runs many jobs on this machine and watches their memory: the option with which env here
#          resets ignored signals, if it has one
# CLOCK    when this machine was started, in hundredths of a second since 1970, so that no process has to tell the time
# Sourced by fork-worker.sh, it only defines `attempt KEY N FORWARD BATCH-ID`, for a subshell: it never returns. The caller
# has set ROOT, BIN, HOST, BOOT, CLOCK, START (fork-start.sh), NOTES (a directory for notes, which are written anew for each job, as
# a new file costs more) and CLAIM, both as seen from the attempt's directory, and `claim_for PID`, called when the program runs.
# Exit status: the program's own, or 216 no such attempt, 217 another copy has the lock, 218 the lock could not be taken
# or the disk is full, 219 the program could not be started, 220 it got no leave to start.
set -u
umask 077
# By the batch system's job script: this is not the first run of its job.
RESTARTED=${GRYPHUS_RESTARTED-} RUN=''
unset GRYPHUS_RESTARTED
case $0 in
  */fork-worker.sh) WATCHED=yes ;;
  *)
    ROOT=$1 RESET=${6-} WATCHED=${6+yes} CLOCK=${7-} START='' CLAIM='' NOTES=''
    BIN=${0%/*}
    HOST=
    [ -r /proc/sys/kernel/hostname ] && read -r HOST </proc/sys/kernel/hostname
    [ -n "$HOST" ] || HOST=$(uname -n)
    BOOT=-
    [ -r /proc/sys/kernel/random/boot_id ] && read -r BOOT </proc/sys/kernel/random/boot_id
    ;;
esac
# shellcheck source=/dev/null
. "$BIN/ends.sh"
# shellcheck source=/dev/null
. "$BIN/inputs.sh"
NL='
'
ENV_COMMAND=$(command -v env)
case $ENV_COMMAND in '' | *[!A-Za-z0-9_./+-]*) ENV_COMMAND='env' ;; esac
now() { date +%s; }

attempt() { # $1 key, $2 submission, $3 signals to forward, $4 the batch system's id
  KEY=$1 N=$2 FORWARD=$3 BATCH_ID=$4
  case $KEY in *.a)
    line=$(sed -n "${N}p" "$ROOT/groups/$KEY/map" 2>/dev/null)
    KEY=${line% *} N=${line##* }
    [ -n "$KEY" ] || exit 216
    ;;
  esac
  PID=$$ PSTART=-
  if [ -n "$CLAIM" ]; then
    # A subshell has its own number, and $$ is that of the shell from which it was made. Its claim tells when it began.
    cd -P /proc/self && PID=${PWD##*/}
  elif [ -r /proc/self/stat ] && read -r stat </proc/self/stat; then
    # shellcheck disable=SC2086 # words of numbers
    set -- ${stat##*) } && PSTART=${20}
  fi
  cd "$ROOT/jobs/$KEY" 2>/dev/null || exit 216
  await_leave
  take_lock
  [ -n "$NOTES" ] || NOTES=run.lock.$N
  perform
}

# An event is one line that ends with ' .', written at once; the JobManager reads only complete lines. Whatever is written while
# the program runs, or after it, has a path from here: ROOT may move, as a user's home directory does.
announce() { # $1 kind, $2 line
  printf '%s\n' "$2" >"../../events/$KEY.$N.$1$RUN"
  # Opening it for both reading and writing never blocks.
  [ -p ../../news ] && printf '\n' 1<>../../news
} 2>/dev/null

# The record of a candidate says `leave SECONDS`: it starts only once the file `leave` exists, which the agent gives to
# one candidate of the job. Until then it takes no lock, so that it can be withdrawn; without leave in this time, it
# fences itself.
leave_within() {
  while IFS= read -r line; do
    case $line in
      'prepared '* | 'submit '*) ;;
      'leave '*) SECONDS_LEFT=${line#leave } && return 0 ;;
      *) return 1 ;;
    esac
  done <spec
  return 1
}
has_leave() { # lists the directory, because a network file system may cache for long that a name does not exist
  set -- leave*
  [ "$1" = leave ]
}
await_leave() {
  leave_within && ! has_leave || return 0
  asks="1 host=$HOST at=$(now) id=$BATCH_ID ."
  printf '%s\n' "$asks" >"asks.$N.new" && mv -f "asks.$N.new" "asks.$N"
  announce q "$asks"
  begun=$(now) pause=0.2
  sleep 0.01 2>/dev/null || pause=1
  while ! has_leave; do
    # It was withdrawn, or another copy started first.
    [ ! -e "run.lock.$N" ] && [ -f spec ] || exit 217
    waited=$(($(now) - begun))
    if [ "$waited" -ge "$SECONDS_LEFT" ]; then
      (set -C && printf 'no leave\n' >"run.lock.$N") 2>/dev/null
      exit 220
    fi
    sleep "$pause"
    [ "$waited" -lt 10 ] || pause=1
  done
}

take_over() { return 1; }
# shellcheck source=/dev/null
[ -z "$RESTARTED" ] || . "$BIN/again.sh"
make_directory() {
  if [ -n "$START" ]; then "$START" "$1"; else mkdir "$1"; fi
}
# The uptime of this machine, to compute times without another process.
up_for() { [ -r /proc/uptime ] && IFS=' .' read -r UP PART _ </proc/uptime && [ "$UP" -ge 0 ]; } 2>/dev/null

# The lock. A directory: a copy has it. A plain file: the submission was fenced, and none of its copies may start.
take_lock() {
  if ! make_directory "run.lock.$N" 2>/dev/null && { [ -e "run.lock.$N" ] || exit 218; } && ! take_over; then
    RUN=
    [ -d "run.lock.$N" ] && announce d "1 host=$HOST pid=$PID at=$(now) id=$BATCH_ID ."
    exit 217
  fi
  # Reserves space for the exit record, as the disk may be full by then. Without it, nothing is started.
  if ! printf '%900s\n' '' >exit.new; then
    rm -f exit.new
    rmdir "run.lock.$N"
    exit 218
  fi 2>/dev/null
  BEGAN='' STARTED=''
  up_for && BEGAN=$UP && [ -n "$CLOCK" ] && STARTED=$(((CLOCK + UP * 100 + 1$PART - 100) / 100))
  [ -n "$STARTED" ] || STARTED=$(now)
  owner="1 host=$HOST pid=$PID pstart=$PSTART boot=$BOOT start=$STARTED${RUN:+ run=$RUN} id=$BATCH_ID ."
  printf '%s\n' "$owner" >"run.lock.$N/owner"
  announce s "$owner"
}

finish() { # $1 how, $2 words
  [ -z "${2-}" ] || set -- "$1" "$(printf '%s' "$2" | tr '\n\t' '  ')"
  user='' system=''
  # Not emptied before: ext4 would send what is written into an emptied file to the disk at once.
  [ -n "${TIMED-}" ] || times 1<>"$NOTES/times"
  { read -r _ && read -r user system; } <"$NOTES/times"
  memory=
  [ -r "run.lock.$N/memory" ] && read -r memory <"run.lock.$N/memory"
  set -- "$1" "${2-}"
  # shellcheck disable=SC2046 # two numbers among names that have no blanks
  { [ -s stdout ] || [ -s stderr ]; } && set -- "$1" "$2" $(wc -c stdout stderr 2>/dev/null)
  if [ -n "$BEGAN" ] && up_for; then ended=$((STARTED + UP - BEGAN)); else ended=$(now); fi
  line="1 how=$1 host=$HOST start=$STARTED end=$ended cpu=$user,$system rss=$memory out=${3:-0} err=${5:-0}"
  line="$line got=${got#,} id=$BATCH_ID words=$2 ."
  # Written at once, since a partial line is ignored. If the disk is full, overwrites the reserved space.
  printf '%s\n' "$line" >./exit || { printf '%s\n' "$line" 1<>exit.new && mv -f exit.new exit; }
  announce x "$line"
}
cannot() {
  finish cannot "$1"
  exit 219
}

# Values in the spec are printable; all other bytes are \0ooo.
decode() {
  VALUE=$1
  case $VALUE in *\\*) VALUE=$(printf '%b.' "$VALUE") && VALUE=${VALUE%.} ;; esac
}

# Whether a shell can export the variable: its name must be an identifier, and some names have a meaning to certain
# shells.
is_plain() {
  case $1 in
    '' | [0-9]* | *[!A-Za-z0-9_]*) return 1 ;;
    _ | BASH* | COMP_* | COPROC | DIRSTACK | EPOCH* | ERRNO | FUNCNAME | GROUPS | HIST* | IFS | LINENO | OPTARG | OPTIND) return 1 ;;
    PIPESTATUS | PPID | RANDOM | READLINE* | SECONDS | SHELLOPTS | SHLVL | SRANDOM | TMOUT | USERNAME | *UID | *GID) return 1 ;;
    KSH* | ZSH* | ARGC | USER_ID | argv | path | fpath | cdpath | manpath | mailpath | status | pipestatus) return 1 ;;
  esac
}

# Called only if it may have failed to start, since the first line of a binary file can be long.
check_interpreter() {
  first=
  IFS= read -r first <"$file" 2>/dev/null
  case $first in '#!'*) ;; *) return ;; esac
  # shellcheck disable=SC2086 # the kernel splits at blanks, too
  interpreter=$(set -f && set -- ${first#??} && printf '%s' "${1-}")
  [ -x "$interpreter" ] || cannot "The interpreter '$interpreter' of $file does not exist at the site."
}

# $1…: variables, an empty word, more variables for env to set, the program, its arguments; never returns. The former
# are exported, as anyone can read command lines. They may have any names, even ours, so none of our variables are used
# later.
launch() {
  trap - TERM HUP INT QUIT USR1 USR2 XCPU
  cd "$DIR" || exit 126
  umask 022
  # shellcheck disable=SC3045 # dash, ash, ksh and bash know it
  [ -z "$CORE" ] || ulimit -S -c "$CORE" 2>/dev/null || :
  set -- GRYPHUS_KEY="$KEY" _CONDOR_SCRATCH_DIR="$HERE/work" BATCH_SYSTEM=Gryphus "$@"
  eval "
    while [ -n \"\$1\" ]; do
      export \"\$1\"
      shift
    done 2>/dev/null
    shift
    exec $BY_ENV \"\$@\""
}
run() {
  if [ -n "$JOINED" ]; then launch "$@" >stdout 2>&1; else launch "$@" >stdout 2>stderr; fi
}
# shellcheck disable=SC2317 # the traps call it
pass_on() { # $1 signal
  got=$got,$1
  case " $FORWARD " in *" $1 "*) ;; *) return ;; esac
  [ -z "$CHILD" ] || kill "-$1" "$CHILD"
} 2>/dev/null

# Does what the record says, and never returns.
perform() {
  got=''
  [ -d work ] || mkdir work || cannot 'The working directory could not be made: is the disk full?'
  HERE=$ROOT/jobs/$KEY
  NAMES=/.job.ad/.machine.ad/ LINKED='' DIR=$HERE/work INPUT=/dev/null JOINED='' CORE='' PROGRAM='' url='' line='' others=''
  IO_NODE='' IO_PROGRAM='' PROXY='' TIMED=''
  set --
  while IFS= read -r line; do
    decode "${line#* }"
    case $line in
      join) JOINED=1 ;;
      'core '*) CORE=$VALUE ;;
      'cwd '*) DIR=$VALUE ;;
      'dir '*)
        mkdir -p "work/$VALUE" || cannot "The directory $VALUE could not be made."
        NAMES=$NAMES${VALUE%%/*}/
        ;;
      'blob '*) sha=${VALUE%% *} there='' bytes=${VALUE#* } && x=${bytes#* } bytes=${bytes%% *} ;;
      'there '*) there=$VALUE ;;
      'url '*) url=$VALUE ;;
      'top '*) NAMES=$NAMES$VALUE/ ;;
      unpack) unpack "$sha" ;;
      'as '*)
        if [ -n "$url" ]; then
          download "$url" "$VALUE"
          url=
        elif [ -n "$there" ]; then
          borrow "$there" "$VALUE"
        else
          place "$sha" "$bytes" "$x" "$VALUE"
        fi
        ;;
      stdin) if [ -n "$there" ]; then INPUT=$there; else cached "$sha" - && INPUT=$SOURCE; fi ;;
      'env '*)
        # shellcheck disable=SC2016 # src/job/start-directory.ts
        case $VALUE in
          *'=$$(GryphusDirectory:'*)
            there=${VALUE#*'=$$(GryphusDirectory:'} VALUE=${VALUE%%=*}
            if [ "$DIR" = "$HERE/work" ]; then VALUE=$VALUE=$DIR; else VALUE=$VALUE=${there%?}; fi
            ;;
        esac
        if is_plain "${VALUE%%=*}"; then set -- "$@" "$VALUE"; else others=$others$line$NL; fi
        ;;
      io-node)
        [ -n "$there" ] || cached "$sha" x
        # shellcheck disable=SC2034 # for io-proxy.sh
        IO_NODE=${there:-$SOURCE}
        ;;
      io-program) cached "$sha" - && IO_PROGRAM=$SOURCE NAMES=$NAMES.chirp.config/ ;;
      'proxy '*)
        [ -r "$ROOT/proxies/$VALUE/x509up" ] || cannot 'The proxy of this job is not at the site.'
        set -- "$@" "X509_USER_PROXY=$ROOT/proxies/$VALUE/x509up"
        ;;
      program)
        PROGRAM=$there
        if [ -z "$there" ]; then
          place "$sha" "$bytes" x condor_exec.exe
          PROGRAM=$HERE/work/condor_exec.exe
          [ "$DIR" != "$HERE/work" ] || PROGRAM=./condor_exec.exe
        fi
        # After the exported variables come those that env sets.
        set -- "$@" ''
        # shellcheck disable=SC2016 # the inner shell expands it
        [ -z "$START" ] || set -- "$@" "$START" /bin/sh -c 'exec "$@"' sh
        # What it would look up in the present directory, env looks up in PATH.
        case $others:$PROGRAM in :*/*) ;; *) [ -z "$START" ] || set -- "$@" "$ENV_COMMAND" -- ;; esac
        while IFS= read -r line; do
          [ -z "$line" ] || { decode "${line#* }" && set -- "$@" "$VALUE"; }
        done <<OTHERS
$others
OTHERS
        # env would take a program with '=' in its path for a variable.
        # shellcheck disable=SC2016 # the inner shell expands it
        case $PROGRAM in *=*) set -- "$@" sh -c 'exec "$@"' sh ;; esac
        set -- "$@" "$PROGRAM"
        ;;
      'arg '*) set -- "$@" "$VALUE" ;;
      end) break ;;
    esac
  done <spec
  [ "$line" = end ] || cannot 'The record of this attempt is not whole.'
  [ "$NAMES" = /.job.ad/.machine.ad/condor_exec.exe/ ] || printf '%s' "$NAMES" >names
  # Only this machine knows its name.
  if [ -f work/.job.ad ]; then
    printf 'Machine = "%s"\nName = "%s"\n' "$HOST" "$HOST" >>work/.machine.ad
    set -- "_CONDOR_JOB_AD=$HERE/work/.job.ad" "_CONDOR_MACHINE_AD=$HERE/work/.machine.ad" "$@"
  fi

  if [ -n "$IO_PROGRAM" ]; then
    # shellcheck source=/dev/null
    . "$BIN/io-proxy.sh"
    open_proxy
    set -- "_CONDOR_CHIRP_CONFIG=$HERE/work/.chirp.config" "$@"
  fi

  # Explains errors that can be found before the start; a later status of 126 or 127 is the program's own.
  [ -d "$DIR" ] || cannot "The directory $DIR does not exist at the site."
  [ -r "$INPUT" ] || cannot "The standard input $INPUT cannot be read at the site."
  case $PROGRAM in
    /*) file=$PROGRAM ;;
    */*) file=$DIR/$PROGRAM ;;
    *) file=$(command -v "$PROGRAM") || cannot "The program $PROGRAM is not in the site's PATH." ;;
  esac
  [ -e "$file" ] || cannot "The program $file does not exist at the site."
  [ ! -d "$file" ] || cannot "The program $file is a directory."
  [ -x "$file" ] || cannot "The program $file may not be executed at the site."
  # A background command of a shell without job control ignores INT and QUIT; only a newer env can reset them. The result
  # is cached for the host.
  if [ -z "$WATCHED" ]; then
    if [ -e "$ROOT/tmp/env.$HOST" ]; then
      RESET=--default-signal=INT,QUIT
    elif env --default-signal=INT,QUIT true; then
      RESET=--default-signal=INT,QUIT
      printf '' >"$ROOT/tmp/env.$HOST"
    fi 2>/dev/null
  fi

  BY_ENV=
  [ -n "$START" ] || BY_ENV="$ENV_COMMAND $RESET --"
  CHILD=''
  for signal in TERM HUP INT QUIT USR1 USR2 XCPU; do
    # shellcheck disable=SC2064 # the name is meant now
    trap "pass_on $signal" "$signal"
  done
  { true >stdout && true >stderr; } || cannot 'The files of its output could not be made: is the disk full?'
  exec 2>"$NOTES/said"
  run "$@" <"$INPUT" &
  CHILD=$!
  [ -z "$CLAIM" ] || claim_for "$CHILD"
  WATCHER=
  if [ -z "$WATCHED" ] && [ -r "$BIN/memory.sh" ]; then
    # shellcheck source=/dev/null
    (. "$BIN/memory.sh" && watch_one "$CHILD" "run.lock.$N") </dev/null >/dev/null 2>&1 &
    WATCHER=$!
  fi
  await_end "$CHILD" "$NOTES"
  [ -z "$WATCHER" ] || { kill -KILL "$WATCHER" && wait "$WATCHER"; } 2>/dev/null
  [ -z "$LINKED" ] || drop_changed
  [ -z "$PROXY" ] || close_proxy
  case $HOW in exited:126 | exited:127) check_interpreter ;; esac
  finish "$HOW"
  exit "$STATUS"
}

case $0 in */fork-worker.sh) ;; *) attempt "$2" "$3" "$4" "${5:--}" ;; esac
