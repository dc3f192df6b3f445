#!/bin/sh
# Gryphus: the site's half. Reads requests from standard input and answers on standard output.
#   jobmanager.sh AGENT NONCE [EPOCH HOLDER], started in the agent's directory at this site (entering.sh)
# NONCE  is repeated in the first line, so that earlier output of log-in scripts can be recognized as noise
# EPOCH  HOLDER: the state directory that is served, below; without them, whoever holds this directory is not asked for
#
# A request is a line `ID VERB SIZE…` followed by as many bytes as its SIZEs say. An answer consists of lines `KIND
# WORDS…`, some of which announce raw bytes, and a last line `end ID STATUS`. The client sends no request before that
# line, so nothing is read ahead. Names, keys and numbers are sent as they are (no blanks), other text with odd bytes as
# %XX or \0ooo. Lines `gryphus: news` on standard error mean that a poll will find something new.
#
# One attempt is a directory jobs/KEY:
#   spec           the record; complete if its last line is `end`
#   intent.N       written before submission N, which is never made without it
#   id.N           the batch system's answer to it, a hint
#   refused.N      or the error of its submit command
#   run.lock.N     a directory: the wrapper has it, and the program of submission N may have started. A plain file:
#                  fenced, no copy of submission N can ever start. Each is created in a way that fails if either exists.
#   cancelled      no further submission
#   asks.N         of a candidate: submission N is ready to start, and waits for leave
#   leave          it may start, and so may every later submission
#   exit           how the program ended
# The file `version` says how all this is written.
# Submission N + 1 is made only after N was fenced, so the program starts at most once, whatever the queue does.
#
# Files holder.EPOCH say which state directories held the agent's directory here, the last of them now: `gryphus recover`
# moves an agent to another machine, and two must never serve it at once. Each is created in a way that fails if it exists.
umask 077
# Default locations of batch systems: a non-login shell has not read the files that set PATH.
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/opt/pbs/bin:/opt/slurm/bin:/usr/local/slurm/bin:/opt/torque/bin
ROOT=$(pwd)
BIN=${0%/*}
BIN=$ROOT/${BIN#./}
# shellcheck source=/dev/null # the site's own lines, which may expect ordinary shell settings
. "$BIN/prelude.sh" </dev/null >&2
set -ufC
unset LC_ALL
LC_ALL=C
AGENT=$1
NONCE=$2
EPOCH=${3-}
HOLDER=${4-}
PREFIX=gryphus.$AGENT.
NL='
'

say() { printf '%s\n' "$*"; }

cd "$ROOT" || exit 66
T=tmp/$NONCE
HOST=$(uname -n)
BOOT=-
[ -r /proc/sys/kernel/random/boot_id ] && read -r BOOT </proc/sys/kernel/random/boot_id
read -r PROGRAMS <"$BIN/names" || exit 66

# Creates what every request needs: a site's cleaner deletes files that are unused for long, or everything. Exits if our
# programs are gone, or if ROOT no longer names this directory; the client then checks and installs them again.
furnish() {
  is_here || exit 66
  [ -z "$EPOCH" ] || [ ! -e "holder.$((EPOCH + 1))" ] || exit 76
  for dir in jobs groups cache in events asking tmp trash "$T"; do [ -d "$dir" ] || mkdir "$dir" || exit 73; done 2>/dev/null
  [ -s "$T/pid" ] || printf '%s %s\n' "$HOST" "$$" >|"$T/pid" 2>/dev/null
  for file in $PROGRAMS; do [ -s "$BIN/$file" ] || exit 66; done
}
is_here() {
  # shellcheck disable=SC3013 # without -ef, inode numbers tell
  [ "$ROOT" -ef . ] 2>/dev/null && return
  there=$(ls -di "$ROOT/." 2>/dev/null) && here=$(ls -di .) && [ "${there% *}" = "${here% *}" ]
}
furnish

# The version of what stands in this directory; one without the file has the first. Exits with 78 if it is a later one.
RECORDS=1
check_records() {
  theirs=$RECORDS
  [ ! -s version ] || read -r theirs <version
  case $theirs in '' | *[!0-9]*) theirs=$RECORDS ;; esac
  if [ "$theirs" -gt "$RECORDS" ]; then
    say "gryphus-newer records of version $theirs; this one supports $RECORDS" >&2
    exit 78
  fi
  [ -z "$EPOCH" ] || [ -s version ] || say "$RECORDS" 2>/dev/null >|version
}
check_records

# Prints the last epoch that anybody had here, or 0.
last_epoch() {
  set +f
  set -- holder.*
  set -f
  last=0
  for file; do
    case ${file#holder.} in '' | *[!0-9]*) ;; *) [ "${file#holder.}" -le "$last" ] || last=${file#holder.} ;; esac
  done
  echo "$last"
}
# Exits with 76 if another state directory has this epoch here, or a later one.
take_hold() {
  last=$(last_epoch)
  [ "$last" -le "$EPOCH" ] || exit 76
  # Every epoch up to ours, so that the JobManagers of all earlier ones notice.
  while [ "$last" -lt "$EPOCH" ]; do
    last=$((last + 1))
    # Not all file systems have links.
    printf '%s\n' "$HOLDER" >|"$T/holder" && { ln "$T/holder" "holder.$last" || printf '%s\n' "$HOLDER" >"holder.$last"; }
  done
  now=
  [ -s "holder.$EPOCH" ] || printf '%s\n' "$HOLDER" >|"holder.$EPOCH" || exit 73
  IFS= read -r now <"holder.$EPOCH" && [ "$now" = "$HOLDER" ] || exit 76
} 2>/dev/null
[ -z "$EPOCH" ] || take_hold

# Tests name a point where the JobManager kills itself, as in a crash of the machine, at the first or COUNT-th pass.
CRASH=
[ -r crash-point ] && IFS=: read -r CRASH CRASH_AT <crash-point
crash_point() {
  [ "$CRASH" = "$1" ] || return 0
  CRASH_AT=$((${CRASH_AT:-1} - 1))
  [ "$CRASH_AT" -gt 0 ] && return 0
  rm -f crash-point
  kill -9 "$$"
  exit 137
}

# Differences between sites are probed only once.
TIMEOUT=
timeout -s KILL 5 true 2>/dev/null && TIMEOUT=1
bounded() { # $1 seconds, then a command: status 124 or 137 if it took longer
  seconds=$1
  shift
  if [ -n "$TIMEOUT" ]; then timeout -s KILL "$seconds" "$@"; else "$@"; fi
}
SYNC=
case $(sync --help 2>&1) in *FILE*) SYNC=1 ;; esac
# Syncing a thousand files one by one takes seconds; syncing their file system, a moment.
SYNC_ALL=
[ -z "$SYNC" ] || { sync -f jobs && SYNC_ALL=1; } 2>/dev/null
TICK=1
sleep 0.01 2>/dev/null && TICK=0.3
SHA=
# openssl uses the processor's instructions for it: it takes a fifth of the time of many a sha256sum.
for tool in 'openssl dgst -sha256 -r' sha256sum 'shasum -a 256' 'busybox sha256sum'; do
  # shellcheck disable=SC2086 # a command and its options
  [ -z "$SHA" ] && printf x | $tool >/dev/null 2>&1 && SHA=$tool
done
# The wrapper's options; names is a file of ours.
TAR=
(cd "$BIN" && tar -cf - names) 2>/dev/null | (cd "$T" && tar -xmof - && rm names) 2>/dev/null && TAR=1
# Prints exactly the next $1 bytes of standard input. A head that reads ahead (busybox) would swallow the next request.
if [ "$(printf abcd | { head -c 2 >/dev/null && cat; })" = cd ]; then
  body() { head -c "$1"; }
else
  BLOCK=65536
  [ "$(printf abcd | dd bs=4 count=1 iflag=fullblock 2>/dev/null)" = abcd ] || BLOCK=1
  body() {
    [ "$1" -lt "$BLOCK" ] || blocks "$BLOCK" "$(($1 / BLOCK))" || return
    [ "$(($1 % BLOCK))" -eq 0 ] || blocks "$(($1 % BLOCK))" 1
  }
  blocks() {
    if [ "$BLOCK" = 1 ]; then dd bs=1 count="$2"; else dd bs="$1" count="$2" iflag=fullblock; fi 2>/dev/null
  }
fi
# Bytes [$1, $1 + $2) of the file $3, which can only grow while it is read.
part() { tail -c "+$(($1 + 1))" -- "$3" | head -c "$2"; }

# Encodes text for one line: blanks, % and all but printable ASCII as %XX.
ENCODE='BEGIN { for (i = 1; i < 256; i++) code[sprintf("%c", i)] = sprintf("%%%02X", i) }
function encode(text, out, i, c) {
  if (text !~ /[^A-Za-z0-9._\/:@+,=-]/) return text
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1)
    out = out (c ~ /[A-Za-z0-9._\/:@+,=-]/ ? c : code[c])
  }
  return out
}'
encoded() { # prints standard input as one word
  LC_ALL=C awk "$ENCODE"' { text = text (NR > 1 ? "\n" : "") $0 } END { print encode(substr(text, 1, 4000)) }'
}

is_key() { case $1 in '' | .* | *[!A-Za-z0-9._-]*) return 1 ;; esac }

current() { # sets CURRENT: the highest intended submission of $1, 0 if none
  CURRENT=0
  while [ -e "jobs/$1/intent.$((CURRENT + 1))" ]; do CURRENT=$((CURRENT + 1)); done
}

# Takes the lock of submission $2 for good, storing the word $3. Fails if the wrapper has it.
fence() {
  printf '%s\n' "$3" 2>/dev/null >"jobs/$1/run.lock.$2" && return 0
  [ -f "jobs/$1/run.lock.$2" ]
} 2>/dev/null

WORKER=0
# Divides the words of $1 among background workers; each calls $3 with its words.
in_parallel() { # $1 words, $2 the most workers, $3 function
  index=0
  workers=
  for _ in $1; do
    [ "$index" -lt "$2" ] || break
    (
      # shellcheck disable=SC2030 # each worker has its own
      WORKER=$index turn=0
      for word in $1; do
        [ "$turn" -eq "$index" ] && "$3" "$word"
        turn=$(((turn + 1) % $2))
      done
    ) </dev/null &
    workers="$workers $!"
    index=$((index + 1))
  done
  # Only for the workers: the watcher of events never ends.
  # shellcheck disable=SC2086 # numbers
  wait $workers
}

for piece in backend records submitting arrays looking watching asking carrying sweeping delegate proxies; do
  # shellcheck source=/dev/null
  . "$BIN/$piece.sh"
done

# Reports new files in events/ and asking/ that have not been announced yet.
watch_events() {
  # Redirecting the call instead would keep the channel open, in the copies from which a shell restores it.
  exec </dev/null >/dev/null
  told=
  hot=0
  while kill -0 "$$"; do
    wait_for_event
    set +f
    set -- events/* asking/*
    set -f
    case $* in
      'events/* asking/*') told= ;;
      "$told") ;;
      *)
        told=$*
        hot=40
        say 'gryphus: news' >&2
        ;;
    esac
  done
}
tick() { # polls faster for a while after something happened
  if [ "$hot" -gt 0 ] && [ "$TICK" != 1 ]; then
    hot=$((hot - 1))
    sleep 0.1 2>/dev/null
  else
    sleep "$TICK" 2>/dev/null
  fi
}

batch_version() { # prints one line, or nothing if the batch system's commands are missing
  version=$(backend_version 2>&1 </dev/null) || return
  printf '%s\n' "$version" | head -n 1
}

say_hello() {
  say "gryphus-jobmanager 1 $NONCE"
  say "fact host $HOST"
  say "fact os $(uname -s) $(uname -r)"
  say "fact arch $(uname -m)"
  say "fact user $(id -un)"
  say "fact home $(printf %s "$ROOT" | encoded)"
  say "fact disk $(df -Pk . 2>/dev/null | LC_ALL=C awk 'NR == 2 { print $4 }')"
  say "fact boot $BOOT"
  kept=
  [ -r mark ] && IFS= read -r kept <mark
  say "fact mark $kept"
  say "fact epoch $(last_epoch)"
  say "fact tools timeout=${TIMEOUT:-0} tick=$TICK sha=$(printf %s "$SHA" | encoded) tar=${TAR:-0}"
  [ -w jobs ] && say 'fact writable 1'
  say "fact batch $(batch_version | encoded)"
  say 'end 0 0'
}

backend_start
say_hello
# Deletes what an earlier JobManager left half deleted.
(exec </dev/null >/dev/null 2>&1 && set +f && rm -rf trash/*) &
end_all() {
  ticker=
  [ ! -s "$T/ticker" ] || read -r ticker <"$T/ticker"
  rm -rf "$T"
  # shellcheck disable=SC2086 # a number or none
  kill "$WATCHER" $ticker
} 2>/dev/null
trap end_all EXIT
trap 'exit 129' HUP TERM
watch_events &
WATCHER=$!
while IFS=' ' read -r id verb size rest; do
  case $verb in
    keep_mark | prepare | commit | poll | answer | cancel | fetch | digest | forget | fence | prune | leave | blobs | admit | account | sweep | audit | recall | probe | csr | proxy | capacity)
      furnish
      # shellcheck disable=SC2086 # numbers
      "do_$verb" "$size" $rest
      say "end $id $?"
      ;;
    *) say "end $id 64" ;;
  esac
done
