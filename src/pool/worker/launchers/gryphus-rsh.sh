#!/bin/sh
# gryphus-rsh [OPTIONS] nodeN COMMAND...: runs a command at a node of this parallel job, as ssh does at a host. It goes
# through the pool's own connections, with the token of this job, and no port is opened at the other node.
while :; do
  case ${1:-} in
    -l | -p | -o | -i) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
if [ $# -lt 2 ]; then
  echo 'usage: gryphus-rsh nodeN COMMAND...' >&2
  exit 255
fi
# Perl starts in a tenth of the time and memory that Node needs, and a launcher starts as many of these as there are nodes.
if command -v perl >/dev/null 2>&1; then
  export PERL_BADLANG=0
  unset PERL5OPT PERL5DB
  # shellcheck disable=SC2016 # Perl's
  exec perl -e '
use strict;
sub fail { print STDERR "gryphus-rsh: $_[0]\n"; exit 255 }
sub quoted { my ($text) = @_; $text =~ s/([\x00-\x1f"\\])/sprintf "\\u%04x", ord $1/ge; return "\"$text\"" }
sub put {
  my ($to, $bytes) = @_;
  while (length $bytes) {
    my $count = syswrite $to, $bytes;
    fail($!) unless defined $count || $! == 4; # EINTR
    substr($bytes, 0, $count // 0) = "";
  }
}
open my $gang, "<", $ENV{GRYPHUS_GANG} // "" or fail("\$GRYPHUS_GANG: $!");
my ($port, $cookie) = split " ", readline($gang) // "";
my $host = shift;
socket(my $worker, 2, 1, 0) or fail($!); # AF_INET, SOCK_STREAM
connect($worker, pack "S n C4 x8", 2, $port // 0, 127, 0, 0, 1) or fail($!);
put($worker, "{\"cookie\":" . quoted($cookie) . ",\"host\":" . quoted($host) . ",\"command\":" . quoted("@ARGV") . "}\n");
my ($open, $held, $bytes) = (1, "");
for (;;) {
  my $ready = "";
  vec($ready, fileno $worker, 1) = 1;
  vec($ready, 0, 1) = 1 if $open;
  next if select($ready, undef, undef, undef) < 0;
  if ($open && vec($ready, 0, 1)) {
    my $count = sysread STDIN, $bytes, 65536;
    if ($count) { put($worker, $bytes) } else { $open = 0; shutdown $worker, 1 }
  }
  next unless vec($ready, fileno $worker, 1);
  sysread($worker, $bytes, 65536) or fail("the connection with the worker ended");
  $held .= $bytes;
  while (length $held >= 5 && length $held >= 5 + unpack "x N", $held) {
    my ($kind, $body) = unpack "C N/a*", $held;
    exit unpack "N", $body if $kind == 3;
    put($kind == 1 ? *STDOUT : *STDERR, $body);
    substr($held, 0, 5 + length $body) = "";
  }
}' -- "$@"
fi
exec @NODE@ -e '
const { readFileSync } = require("node:fs");
const { connect } = require("node:net");
const [host, ...words] = process.argv.slice(1);
const [port, cookie] = readFileSync(process.env.GRYPHUS_GANG, "utf8").trim().split(" ");
const fail = (message) => {
  process.stderr.write(`gryphus-rsh: ${message}\n`);
  process.exit(255);
};
const socket = connect({ host: "127.0.0.1", port: Number(port), allowHalfOpen: true });
socket.write(JSON.stringify({ cookie, host, command: words.join(" ") }) + "\n");
process.stdin.on("error", () => socket.end()).pipe(socket);
let held = Buffer.alloc(0);
socket.on("data", (bytes) => {
  held = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
  while (held.length >= 5 && held.length >= 5 + held.readUInt32BE(1)) {
    const end = 5 + held.readUInt32BE(1);
    const body = held.subarray(5, end);
    if (held[0] === 1) process.stdout.write(body);
    else if (held[0] === 2) process.stderr.write(body);
    else process.exit(body.readInt32BE(0));
    held = held.subarray(end);
  }
});
socket.on("error", (error) => fail(error.message));
socket.on("close", () => fail("the connection with the worker ended"));
' -- "$@"
