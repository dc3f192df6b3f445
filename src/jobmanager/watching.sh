# Gryphus: files of running jobs that are wanted while they grow. Part of jobmanager.sh.

# Sets FOUND: words for find by which it finds the files of a job that match one of the patterns, none of them through a
# link, and looks into no directory deeper than the deepest pattern. The only special character of a pattern is *, which
# may stand for a slash: the client sorts out what does not match.
found_by() { # $1 key, $2 patterns with a colon between them
  top=jobs/$1/work deepest='' FOUND=''
  IFS=:
  # shellcheck disable=SC2086 # patterns without blanks
  set -- $2
  unset IFS
  for pattern; do
    FOUND="$FOUND -o -path $top/$pattern"
    below=$top/\* rest=$pattern
    while :; do
      case $rest in */*) rest=${rest#*/} below=$below/\* ;; *) break ;; esac
    done
    [ "${#below}" -le "${#deepest}" ] || deepest=$below
  done
  FOUND="$top -type d -path $deepest -prune -o -type f ( ${FOUND# -o } )"
}

# A command that prints the sizes of files, one a line; without one, each file is read.
STAT=
for tool in 'stat -c %s' 'stat -f %z'; do
  case $STAT$($tool . 2>/dev/null) in '' | *[!0-9]*) ;; *) STAT=$tool ;; esac
done
# Prints `SIZE NAME` of the files in its arguments. If one of them has gone, prints nothing: they are looked at again.
# shellcheck disable=SC2016 # for the inner shell
SIZES='
stat=$1 encode=$2
shift 2
if [ -n "$stat" ]; then $stat -- "$@"; else for file do wc -c <"$file" || exit; done; fi 2>/dev/null |
  LC_ALL=C awk "$encode"" BEGIN {
    files = ARGC - 1
    for (i = 1; i <= files; i++) name[i] = ARGV[i]
    # Reads standard input.
    ARGC = 1
  }
  { size[NR] = \$1 }
  END {
    for (i = 1; NR == files && i <= files; i++) {
      sub(/^jobs\/[^\/]*\/work\//, \"\", name[i])
      print size[i] \" \" encode(name[i])
    }
  }" "$@"'

# The most bytes of lines about sizes in one answer.
MOST_SIZES=16777216
# Each word is `w:KEY:PATTERN…`, or, if the client knows nothing of the files yet, `W:KEY:PATTERN…`. Answers `size KEY SIZE
# NAME` for those whose sizes have changed since they were told.
watch_files() { # $1 words, $2 the time
  sizes_left=$MOST_SIZES
  case $1 in *W:*) ;; *) [ "$2" -ge "$WATCH_AT" ] || return 0 ;; esac
  looked=0
  for word in $1; do
    key=${word#?:} patterns=${key#*:} key=${key%%:*}
    is_key "$key" || continue
    [ -d "jobs/$key/work" ] || continue
    case $word in W:*) rm -f "$T/sizes.$key" ;; esac
    found_by "$key" "$patterns"
    # shellcheck disable=SC2086 # words for find
    LC_ALL=C find $FOUND -exec sh -c "$SIZES" sh "$STAT" "$ENCODE" {} + 2>/dev/null >|"$T/now"
    LC_ALL=C awk -v "told=$T/sizes.$key" -v "key=$key" -v "left=$sizes_left" '
      BEGIN {
        while ((getline line < told) > 0) {
          split(line, part, " ")
          was[part[2]] = part[1]
        }
        close(told)
      }
      ($2 in was) && was[$2] == $1 { next }
      left > 0 {
        line = "size " key " " $1 " " $2
        left -= length(line)
        print line
        was[$2] = $1
        changed = 1
      }
      END {
        if (!changed) exit
        printf "" > told
        for (name in was) print was[name] " " name > told
      }' "$T/now" >|"$T/changed"
    cat "$T/changed"
    sizes_left=$((sizes_left - $(wc -c <"$T/changed")))
    looked=$((looked + $(wc -l <"$T/now")))
  done
  rm -f "$T/now" "$T/changed"
  # Many files are looked at less often.
  WATCH_AT=$(($2 + 1 + looked / 2000))
}
WATCH_AT=0

# Whether no part of a name below a directory is a link, and it is a file.
is_straight() { # $1 directory, $2 name
  there=$1 rest=$2
  while :; do
    there=$there/${rest%%/*}
    [ ! -h "$there" ] || return 1
    case $rest in */*) rest=${rest#*/} ;; *) break ;; esac
  done
  [ -f "$there" ]
}

# Each word is `p:KEY/NAME:OFFSET`, odd bytes and the colon as \0ooo. $2: the most bytes of each. Answers `pieces BYTES… ALL`,
# a number for each word and their sum, then all these bytes and a newline.
send_pieces() { # $1 words, $2 most bytes
  set -- "$2" "$1"
  most=$1 words=$2
  set --
  for word in $words; do
    key=${word#p:} offset=${word##*:} name=${key#*/} key=${key%%/*}
    name=${name%:*}
    case $name in *\\*) name=$(printf '%b.' "$name") && name=${name%.} ;; esac
    chunk=$T/piece.$#
    : >|"$chunk"
    if is_key "$key" && is_straight "jobs/$key/work" "$name"; then
      case $offset in
        0) head -c "$most" -- "$there" >|"$chunk" ;;
        *) part "$offset" "$most" "$there" >|"$chunk" ;;
      esac 2>/dev/null
    fi
    set -- "$@" "$chunk"
  done
  wc -c "$@" | LC_ALL=C awk -v "of=$#" 'NR <= of { line = line " " $1; sum += $1 } END { print "pieces" line " " sum + 0 }'
  cat "$@"
  say
  rm -f "$@"
}
