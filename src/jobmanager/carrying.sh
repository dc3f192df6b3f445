# Gryphus: transfers files in and out. Part of jobmanager.sh.

# Body 1: words `SHA:BYTES`. Body 2: their contents in the same order. Answers `stored SHA` or `bad SHA`.
do_blobs() {
  words=$(body "$1")
  for word in $words; do body "${word#*:}" >|"in/${word%:*}" || cat_away "${word#*:}" "in/${word%:*}"; done
  names=
  for word in $words; do names="$names ${word%:*}"; done
  take_in "$names"
}
# If the disk is full, the rest of the content must still be read, or the following requests would be garbled.
cat_away() {
  written=$(wc -c <"$2" 2>/dev/null)
  say "fatal the disk of the site is full (${written:-0} of $1 bytes)"
  exit 74
}

# Body: words SHA of files placed in in/. Answers `stored SHA` or `bad SHA WORDS`.
do_admit() { take_in "$(body "$1")"; }

take_in() { # $1 words SHA
  # shellcheck disable=SC2086 # hashes have no blanks
  good=$(cd in && $SHA $1 2>/dev/null | LC_ALL=C awk '{ sub(/^\*/, "", $2); if ($1 == $2) print $2 }')
  # shellcheck disable=SC2086
  [ -z "$good" ] || (cd in && chmod 400 $good && mv -f $good ../cache/) 2>/dev/null
  for name in $1; do
    if [ -f "cache/$name" ] && [ ! -f "in/$name" ]; then
      say "stored $name"
    else
      say "bad $name"
      rm -f "in/$name"
    fi
  done
}

# Body: words `f:KEY/NAME` (a file, or a directory with all its files), `n:KEY` (new files at the top), `o:KEY`, `e:KEY`
# (the streams), `p:KEY:PATTERN…` (files that match, as in watching.sh); odd bytes of NAME as \0ooo. $2: the largest file to
# include in the answer, in blocks of 512 bytes.
# Answers `missing KEY NAME`; `small NAME…` and `stream NONCE COUNT`, followed by the files, each ended by a newline,
# NONCE and a newline; `streamed STATUS`; `big NAME…`; `executable NAME…`; `bit OCTAL NAME` for each permission bit of a
# file whose mode is neither 644 nor 755. These NAMEs are relative to jobs/, with %XX.
# `odd KEY WHAT NAME`: a pipe, socket, device or loop among the requested files; NAME is relative to the attempt's
# directory, with %XX.
do_fetch() {
  words=$(body "$1") limit=$2
  # Appending copies the whole list each time, so it is kept short.
  set --
  for word in $words; do
    key=${word#?:} name=''
    case $word in
      f:*) name=${key#*/} key=${key%%/*} ;;
      p:*) patterns=${key#*:} key=${key%%:*} ;;
    esac
    is_key "$key" || continue
    if [ ! -d "jobs/$key" ]; then
      say "gone $key"
      continue
    fi
    case $word in
      p:*)
        found_by "$key" "$patterns"
        LINKS=''
        # shellcheck disable=SC2086 # words for find
        send_files "$limit" $FOUND
        LINKS=-L
        continue
        ;;
      o:*) file=jobs/$key/stdout ;;
      e:*) file=jobs/$key/stderr ;;
      n:*)
        names_there "$key"
        set +f
        for file in "jobs/$key/work"/* "jobs/$key/work"/.[!.]* "jobs/$key/work"/..?*; do
          [ -f "$file" ] || continue
          case $THERE in *"/${file##*/}/"*) continue ;; esac
          [ $# -lt 500 ] || {
            send_files "$limit" "$@"
            set --
          }
          set -- "$@" "$file"
        done
        set -f
        continue
        ;;
      *)
        plain=$name
        case $name in *\\*) plain=$(printf '%b.' "$name") && plain=${plain%.} ;; esac
        file=jobs/$key/work/$plain
        ;;
    esac
    if [ ! -e "$file" ]; then
      say "missing $key ${name:-${file##*/}}"
    else
      [ $# -lt 500 ] || {
        send_files "$limit" "$@"
        set --
      }
      odd=
      [ -f "$file" ] || odd=$(odd_in "$file")
      if [ -z "$odd" ]; then
        set -- "$@" "$file"
      else
        say "odd $key ${odd%% *} $(printf %s "${odd#* }" | cut -d / -f 4- | encoded)"
      fi
    fi
  done
  [ $# -eq 0 ] || send_files "$limit" "$@"
}
# Finds what has no content in $1, which may be a directory: prints the first as `WHAT PATH`. Sockets left in a
# directory are ignored, as in HTCondor.
odd_in() {
  if [ -S "$1" ]; then
    printf 'socket %s\n' "$1"
    return
  fi
  # shellcheck disable=SC2016 # for the inner shell
  odd=$(find -H "$1" -type l -exec sh -c '
    for link do
      there=$(cd -P "$link" && pwd -P) && here=$(cd -P "${link%/*}" && pwd -P) || continue
      case $here/ in "$there"/*) printf "loop %s\n" "$link" && exit ;; esac
      echo further
    done' sh {} + 2>/dev/null | LC_ALL=C awk '/^loop/ { print; found = 1; exit } END { if (NR && !found) print "further" }')
  if [ "$odd" = further ]; then
    # 40 directories with two links each have 2 ** 40 paths.
    most=$(($(find -H "$1" | wc -l) + 20000)) odd=
    [ "$(find -L "$1" 2>/dev/null | head -n "$((most + 1))" | wc -l)" -le "$most" ] || odd="loop $1"
  fi
  [ -n "$odd" ] || odd=$(find -L "$1" -type p -exec printf 'pipe %s\n' {} \; 2>/dev/null | head -n 1)
  [ -n "$odd" ] || odd=$(find -L "$1" \( -type b -o -type c \) -exec printf 'device %s\n' {} \; 2>/dev/null | head -n 1)
  printf '%s\n' "$odd"
}
send_files() { # $1 the limit, then files
  limit=$1
  shift
  printf '\n%s\n' "$NONCE" >|"$T/mark"
  # shellcheck disable=SC2016 # for the inner shell
  LC_ALL=C find $LINKS "$@" -type f ! -size "+$limit" -exec sh -c '
    mark=$1 encode=$2 nonce=$3 cats=$4
    shift 4
    LC_ALL=C awk "$encode"" BEGIN { for (i = 1; i < ARGC; i++) print \"small \" encode(substr(ARGV[i], 6)); exit }" "$@"
    printf "stream %s %s\n" "$nonce" "$#"
    eval "$(LC_ALL=C awk "$cats" "$@")"
    printf "streamed %s\n" "$?"' sh "$T/mark" "$ENCODE" "$NONCE" "$CATS" {} + 2>/dev/null
  list_files big "$@" -type f -size "+$limit"
  list_files executable "$@" -type f -perm -100
  # find can test mode bits only one by one.
  set -- "$@" -type f ! -perm 644 ! -perm 755
  for bit in 400 200 100 040 020 010 004 002 001; do
    set -- "$@" '(' ! -perm "-$bit" -o -exec awk "$ENCODE$LIST" "bit $bit" {} + ')'
  done
  LC_ALL=C find $LINKS "$@" 2>/dev/null
}
# Whether links are followed: not for patterns.
LINKS=-L
# Body: words NAME relative to jobs/, odd bytes as \0ooo. Answers `digest SHA256 NAME` for each readable file.
do_digest() {
  for name in $(body "$1"); do
    plain=$name
    case $name in *\\*) plain=$(printf '%b.' "$name") && plain=${plain%.} ;; esac
    digest=$($SHA 2>/dev/null <"jobs/$plain") && say "digest ${digest%% *} $name"
  done
}
# Prints the command that writes the files of its arguments with the mark after each. A shell that appends them to its
# own arguments one by one copies all of them each time.
# shellcheck disable=SC2016 # the shell that is fed by it expands $mark
CATS=' BEGIN {
  printf "cat --"
  for (i = 1; i < ARGC; i++) {
    gsub(/\047/, "\047\"\047\"\047", ARGV[i])
    printf " \047%s\047 \"$mark\"", ARGV[i]
  }
  exit
}'
LIST=' BEGIN { for (i = 2; i < ARGC; i++) print ARGV[1] " " encode(substr(ARGV[i], 6)); exit }'
list_files() { # $1 kind, then arguments for find
  kind=$1
  shift
  LC_ALL=C find $LINKS "$@" -exec awk "$ENCODE$LIST" "$kind" {} + 2>/dev/null
}

# Sets THERE: the names that were placed at the top of the working directory, each with a / before and after it.
names_there() { # $1 key
  # Those of most jobs, which are not written down.
  THERE=/.job.ad/.machine.ad/condor_exec.exe/
  [ -f "jobs/$1/names" ] || return 0
  THERE=
  while IFS= read -r line; do THERE=$THERE$line$NL; done <"jobs/$1/names"
  THERE=$THERE$line
}
