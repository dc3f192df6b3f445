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
