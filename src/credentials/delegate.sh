# The site's half of delegation: the key pair is made here and never leaves; the agent signs the request. POSIX sh,
# sourced by the JobManager. Needs openssl. Prints nothing but what is named here.

# gryphus_delegate_request DIR: prints a certificate request (PEM) for a new key, DIR/proxy.key. Called again before the
# answer has come, it prints the same request, so that repeating a call is cheap and harmless.
# Returns 0; 69 if there is no openssl; 74 if the request could not be made.
gryphus_delegate_request() (
  umask 077
  set +C
  command -v openssl >/dev/null 2>&1 || return 69
  if [ ! -s "$1/proxy.csr" ] || [ ! -s "$1/proxy.key" ]; then
    rm -f "$1/proxy.csr"
    printf '[req]\ndistinguished_name=dn\nprompt=no\n[dn]\nCN=proxy request\n' >"$1/proxy.cnf" || return 74
    openssl req -new -newkey rsa:2048 -nodes -sha256 -config "$1/proxy.cnf" \
      -keyout "$1/proxy.key" -out "$1/proxy.csr.new" </dev/null >/dev/null 2>&1 || return 74
    chmod 600 "$1/proxy.key" && mv -f "$1/proxy.csr.new" "$1/proxy.csr" || return 74
    rm -f "$1/proxy.cnf"
  fi
  cat "$1/proxy.csr"
)

# gryphus_delegate_install DIR: reads the signed proxy and its issuers (PEM) on standard input and replaces the proxy
# file DIR/x509up atomically: certificate, key, issuers; mode 0600. The job's X509_USER_PROXY names that file.
# Returns 0; 65 if the certificate is not for our key (request anew); 74 if the file could not be written.
gryphus_delegate_install() (
  umask 077
  set +C
  cat >"$1/proxy.pem.new" || return 74
  if [ ! -s "$1/proxy.key" ]; then
    # The answer may be a repeated one, whose proxy is already in place.
    sed '/-----END CERTIFICATE-----/q' "$1/proxy.pem.new" >"$1/proxy.first.new"
    sed '/-----END CERTIFICATE-----/q' "$1/x509up" 2>/dev/null | cmp -s - "$1/proxy.first.new"
    gryphus_same=$?
    rm -f "$1/proxy.pem.new" "$1/proxy.first.new"
    [ "$gryphus_same" -eq 0 ] && return 0
    return 65
  fi
  gryphus_ours=$(openssl rsa -in "$1/proxy.key" -pubout 2>/dev/null)
  gryphus_theirs=$(openssl x509 -in "$1/proxy.pem.new" -noout -pubkey 2>/dev/null)
  if [ -z "$gryphus_ours" ] || [ "$gryphus_ours" != "$gryphus_theirs" ]; then
    rm -f "$1/proxy.pem.new"
    return 65
  fi
  {
    sed '/-----END CERTIFICATE-----/q' "$1/proxy.pem.new" &&
      cat "$1/proxy.key" &&
      sed '1,/-----END CERTIFICATE-----/d' "$1/proxy.pem.new"
  } >"$1/x509up.new" && chmod 600 "$1/x509up.new" && mv -f "$1/x509up.new" "$1/x509up" || return 74
  rm -f "$1/proxy.pem.new" "$1/proxy.key" "$1/proxy.csr"
)
