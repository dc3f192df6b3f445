# Gryphus: puts the inputs of an attempt into its directory. Part of wrapper.sh.

cached() { # $1 sha, $2 x or -: prints the path of the content; with x, that of an executable copy
  SOURCE=$ROOT/cache/$1
  [ -f "$SOURCE" ] || cannot "The input $1 is not in the site's cache."
  [ "$2" = x ] || return 0
  SOURCE=$SOURCE.x
  [ -f "$SOURCE" ] && return 0
  cp -p "${SOURCE%.x}" "$SOURCE.$KEY" && chmod 500 "$SOURCE.$KEY" && mv -f "$SOURCE.$KEY" "$SOURCE"
}

# Links large content and programs but copies small data: a program may write into its inputs.
place() { # $1 sha, $2 bytes, $3 x or -, $4 name
  cached "$1" "$3"
  case $4 in */*) [ -d "work/${4%/*}" ] || mkdir -p "work/${4%/*}" ;; *) NAMES=$NAMES$4/ ;; esac
  if [ "$3" = x ] || [ "$2" -gt 1048576 ]; then
    make_link "$SOURCE" "work/$4" 2>/dev/null && LINKED="$LINKED $1" && return 0
  fi
  cat "$SOURCE" >"work/$4" || cannot "The input $4 could not be copied: is the disk full?"
  [ "$3" = - ] || chmod u+x "work/$4"
}

# Many small inputs in one archive: a process for each of them would take longer than the whole transfer.
unpack() { # $1 sha
  cached "$1" -
  command -v tar >/dev/null || cannot 'The inputs could not be unpacked: there is no tar on this machine of the site.'
  (cd work && exec tar -xmof -) <"$SOURCE" 2>"run.lock.$N/unpack" ||
    cannot "The inputs could not be unpacked: $(tail -n 1 "run.lock.$N/unpack")"
}

borrow() { # $1 path at the site, $2 name
  case $2 in */*) mkdir -p "work/${2%/*}" ;; *) NAMES=$NAMES$2/ ;; esac
  [ -r "$1" ] || cannot "The input $1 cannot be read at the site."
  ln -s "$1" "work/$2" || cannot "The input $1 could not be linked."
}

# Uses whatever tool the site has, and resumes interrupted transfers. The URL may hold a secret (a signature), and
# anyone on the host can read command lines, so it is passed on standard input. Some versions of wget (busybox) only
# take it as an argument, and are not used.
download() { # $1 URL, $2 name
  NAMES=$NAMES$2/
  if command -v curl >/dev/null; then
    printf 'url = "%s"\n' "$(printf %s "$1" | sed 's/[\\"]/\\&/g')" |
      curl -qgfsSL --connect-timeout 60 --retry 5 -C - -o "work/$2" -K - 2>"run.lock.$N/download"
  elif command -v wget >/dev/null; then
    case $(wget --help 2>&1) in
      *--input-file*) printf '%s\n' "$1" | wget -nv -c -t 5 -T 60 -O "work/$2" -i - ;;
      *) cannot 'The site has no curl, and its wget would show the URL of an input to everyone on the host.' ;;
    esac 2>"run.lock.$N/download"
  else
    cannot "The site has neither curl nor wget to fetch $1."
  fi || cannot "The input $1 could not be fetched at the site: $(tail -n 1 "run.lock.$N/download")"
}

make_link() {
  if [ -n "$START" ]; then "$START" "$1" "$2"; else ln "$1" "$2"; fi
}

# An input that is a link no longer matches its name if the program wrote into it. Its time alone does not tell, because
# preparing another job with it changes the time.
is_still() { # $1 file, $2 its sha
  for tool in 'openssl dgst -sha256 -r' sha256sum 'shasum -a 256' 'busybox sha256sum'; do
    # shellcheck disable=SC2086 # a command and its options
    sum=$($tool "$1" 2>/dev/null) && [ "${sum%% *}" = "$2" ] && return
  done
  return 1
}
drop_changed() {
  for sha in $LINKED; do
    for file in "$ROOT/cache/$sha" "$ROOT/cache/$sha.x"; do
      # shellcheck disable=SC3013 # without -ot, and within one second in some shells, the content tells
      [ ! -e "$file" ] || [ "$file" -ot "run.lock.$N/owner" ] 2>/dev/null || is_still "$file" "$sha" || rm -f "$file"
    done
  done
}
