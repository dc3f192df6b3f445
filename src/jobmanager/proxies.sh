# Gryphus: the proxies of the jobs here, in proxies/NAME/x509up. Part of jobmanager.sh; delegate.sh makes the keys.

# Body: a word NAME. Answers `data NAME BYTES`: the certificate request for a key that stays here. Status 69: no
# openssl.
do_csr() {
  name=$(body "$1")
  is_key "$name" || return 64
  mkdir -p "proxies/$name" || return 74
  gryphus_delegate_request "proxies/$name" >|"$T/csr" || return
  crash_point jm.csr-made
  say "data $name $(wc -c <"$T/csr" | tr -d ' ')"
  cat "$T/csr"
  say
}

# Body 1: a word NAME. Body 2: the signed proxy and its issuers. Status 65: it does not fit the key here; request it
# anew.
do_proxy() {
  name=$(body "$1")
  if is_key "$name" && [ -d "proxies/$name" ]; then
    body "$2" | (
      gryphus_delegate_install "proxies/$name"
      status=$?
      cat >/dev/null
      exit "$status"
    ) || return
    crash_point jm.proxy-in-place
  else
    body "$2" >/dev/null
    return 65
  fi
}

# Deletes proxies that no job here uses.
sweep_proxies() {
  [ -d proxies ] || return 0
  # shellcheck disable=SC2044 # names have no blanks
  for dir in $(find proxies -type d -name '?*' -mmin +120 ! -name proxies 2>/dev/null); do
    [ -z "$(find jobs -name spec -exec grep -lx "proxy ${dir#proxies/}" {} + 2>/dev/null)" ] && rm -rf "$dir"
  done
}
