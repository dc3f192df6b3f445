# Gryphus: the attempts' records at the site. Part of jobmanager.sh.

# Keeps the position of the agent's queue: a queue that later reports a lower one is an older copy.
keep_mark() { # $1 the mark, or nothing
  [ -z "${1-}" ] || printf '%s\n' "$1" >|mark
} 2>/dev/null
do_keep_mark() {
  body "$1" >/dev/null
  keep_mark "$2"
}

# Body 1: words `blob:SHA` (needed) and keys. Body 2: for each key a line `= KEY`, the lines of its spec, and lines `ad
# LINE` and `machine LINE` of the files for the program, odd bytes as \0ooo; lines before the first key apply to all.
# $3: the queue's mark, or nothing. Answers `missing SHA` and does nothing more, or for each key `ok KEY` or `failed KEY
# WORDS`.
do_prepare() {
  keep_mark "${3-}"
  words=$(body "$1") missing='' touched='' new='' there=''
  for word in $words; do
    case $word in
      blob:*)
        word=${word#blob:}
        if [ -f "cache/$word" ]; then touched="$touched cache/$word"; else missing="$missing $word"; fi
        ;;
      *)
        is_key "$word" || continue
        if [ -f "jobs/$word/spec" ]; then there="$there $word"; else new="$new $word"; fi
        ;;
    esac
  done
  # shellcheck disable=SC2086 # keys have no blanks
  [ -z "$there" ] || printf 'ok %s\n' $there
  if [ -n "$missing" ] || [ -z "$new" ]; then
    body "$2" >/dev/null
    for word in $missing; do say "missing $word"; done
    return 0
  fi
  # shellcheck disable=SC2046,SC2086 # keys and hashes have no blanks
  {
    [ -z "$touched" ] || touch -c $touched
    mkdir -p "$T/stage" && (cd "$T/stage" && mkdir $new $(for key in $new; do echo "$key/work"; done)) 2>|"$T/why"
  }
  body "$2" | {
    LC_ALL=C awk -v "stage=$T/stage/" -v "keys=$new" -v "now=$(date +%s)" '
      function plain(text, out, at) {
        while ((at = index(text, "\\0")) > 0) {
          out = out substr(text, 1, at - 1) sprintf("%c", substr(text, at + 2, 1) * 64 + substr(text, at + 3, 1) * 8 + substr(text, at + 4, 1))
          text = substr(text, at + 5)
        }
        return out text
      }
      BEGIN { n = split(keys, list, " "); for (i = 1; i <= n; i++) want[list[i]] = 1 }
      /^= / {
        if (out) { close(out); close(job); close(machine) }
        begun = 1
        out = ($2 in want) ? stage $2 "/spec" : ""
        job = stage $2 "/work/.job.ad"
        machine = stage $2 "/work/.machine.ad"
        if (out) {
          print "prepared " now > out
          if (jobs != "") print jobs > job
          if (machines != "") print machines > machine
        }
        next
      }
      !begun && /^ad / { jobs = jobs (jobs == "" ? "" : "\n") plain(substr($0, 4)) }
      !begun && /^machine / { machines = machines (machines == "" ? "" : "\n") plain(substr($0, 9)) }
      !out { next }
      /^ad / { print plain(substr($0, 4)) > job; next }
      /^machine / { print plain(substr($0, 9)) > machine; next }
      { print > out }' 2>>"$T/why"
    cat >/dev/null
  }
  crash_point jm.prepare-staged
  whole=$(
    # shellcheck disable=SC2046,SC2086
    cd "$T/stage" && LC_ALL=C awk '$0 == "end" { sub(/\/.*/, "", FILENAME); print FILENAME }' $(for key in $new; do echo "$key/spec"; done)
  ) 2>>"$T/why"
  # shellcheck disable=SC2086
  [ -z "$whole" ] || (cd "$T/stage" && mv $whole ../../../jobs/) 2>>"$T/why"
  crash_point jm.prepare-moved
  there='' failed=''
  for key in $new; do
    if [ -f "jobs/$key/spec" ]; then there="$there $key"; else failed="$failed $key"; fi
  done
  # shellcheck disable=SC2086
  [ -z "$there" ] || printf 'ok %s\n' $there
  [ -n "$failed" ] || return 0
  why=$(encoded <"$T/why")
  for key in $failed; do say "failed $key $why"; done
  rm -rf "$T/stage"
}

# Body: words KEY that may start; the leave is on disk before the answer. Answers `left KEY`, `gone KEY` or `withdrawn
# KEY`.
do_leave() {
  given=
  for key in $(body "$1"); do
    is_key "$key" || continue
    if [ ! -f "jobs/$key/spec" ]; then
      say "gone $key"
    elif [ -e "jobs/$key/cancelled" ]; then
      say "withdrawn $key"
    else
      crash_point jm.leave-before
      date +%s >|"jobs/$key/leave" || continue
      given="$given $key"
    fi
  done 2>/dev/null
  # shellcheck disable=SC2046 # keys have no blanks
  [ -z "$SYNC" ] || [ -z "$given" ] || sync $(for key in $given; do echo "jobs/$key/leave"; done) 2>/dev/null
  crash_point jm.leave-written
  for key in $given; do say "left $key"; done
}

# Body: words `KEY:N`. Answers `fenced KEY N`, or `taken KEY N` if a wrapper has the lock.
do_fence() {
  for word in $(body "$1"); do
    is_key "${word%:*}" || continue
    if fence "${word%:*}" "${word##*:}" lost; then say "fenced ${word%:*} ${word##*:}"; else say "taken ${word%:*} ${word##*:}"; fi
  done
}

# Body: words TAG of copies that must not run, and would leave at once. Removes them from the queue.
do_prune() {
  answer=$(backend_cancel TERM "$(body "$1")" 2>&1 </dev/null)
  say "cancel $? $(printf %s "$answer" | encoded)"
}

# Body: words KEY. $2: TERM, KILL or FORCE: no submission of the key can start after this, and running programs are told
# to end.
# $2: WAITING: the same for what has not started; what has (`taken`) is left alone.
# Answers for each key `fenced KEY N`, `taken KEY N`, `ended KEY N` or `none KEY`; then `cancel STATUS WORDS`.
do_cancel() {
  tags=
  for key in $(body "$1"); do
    is_key "$key" || continue
    if [ ! -d "jobs/$key" ]; then
      say "none $key"
      continue
    fi
    current "$key"
    # The lock decides who was first, the wrapper or this.
    if [ "$2" = WAITING ] && [ "$CURRENT" -gt 0 ] && ! fence "$key" "$CURRENT" cancelled; then
      say "taken $key $CURRENT"
      continue
    fi
    printf '%s\n' "$HOST" >|"jobs/$key/cancelled"
    if [ "$CURRENT" -eq 0 ]; then
      fence "$key" 1 cancelled
      say "fenced $key 0"
      continue
    fi
    if fence "$key" "$CURRENT" cancelled; then word=fenced; else word=taken; fi
    [ -f "jobs/$key/exit" ] && word=ended
    n=$CURRENT
    while [ "$n" -gt 0 ]; do tags="$tags gryphus.$key.$n" n=$((n - 1)); done
    say "$word $key $CURRENT"
  done
  crash_point jm.cancel-locked
  [ -z "$tags" ] || {
    how=$2
    [ "$how" != WAITING ] || how=TERM
    answer=$(backend_cancel "$how" "$tags" 2>&1 </dev/null)
    say "cancel $? $(printf %s "$answer" | encoded)"
  }
  crash_point jm.cancel-sent
}

# Body: words KEY; $2: the queue's mark, or nothing. Deletes everything of these attempts; answers `forgot KEY` or
# `failed KEY`.
do_forget() {
  keep_mark "${2-}"
  bin=trash/$NONCE.$$
  keys=$(body "$1") here=''
  for key in $keys; do is_key "$key" && [ -d "jobs/$key" ] && here="$here jobs/$key"; done
  if [ -n "$here" ]; then
    mkdir -p "$bin"
    # shellcheck disable=SC2086 # keys have no blanks
    mv $here "$bin/"
    crash_point jm.forget-moved
    rm -rf "$bin"
  fi 2>/dev/null
  crash_point jm.forget-deleted
  gone='' patterns=''
  for key in $keys; do
    is_key "$key" || continue
    if [ -d "jobs/$key" ]; then say "failed $key"; else gone="$gone $key" patterns="$patterns events/$key.*"; fi
  done
  # shellcheck disable=SC2086 # keys have no blanks
  [ -z "$gone" ] || printf 'forgot %s\n' $gone
  set +f
  set -- events/*
  # Usually all events were acknowledged; expanding a pattern would read the whole directory.
  # shellcheck disable=SC2086 # patterns of safe words
  [ ! -e "$1" ] || [ -z "$patterns" ] || rm -f $patterns
  set -- asking/*
  [ ! -e "$1" ] || for key in $gone; do rm -f asking/"$key".*; done
  set -f
}
