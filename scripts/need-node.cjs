'use strict';
// Preloaded (`node -r`) by every script that is started here, and built into dist/: an old Node prints a sentence, not
// a syntax error. So
// this file is written in the JavaScript of ten years ago.
var engines = require('../package.json').engines;

/** Ends the process with one sentence unless this Node is `major`.`minor` or later. */
function needNode(major, minor) {
  var own = process.versions.node.split('.').map(Number);
  if (own[0] > major || (own[0] === major && own[1] >= minor)) return;
  console.error(
    'gryphus: Node ' + major + '.' + minor + ' or later is needed; this is ' + process.versions.node + ' (' + process.execPath +
      '). See https://nodejs.org/en/download'
  );
  process.exit(69);
}

var wanted = /^>=(\d+)\.(\d+)$/.exec(engines.node);
needNode(Number(wanted[1]), Number(wanted[2]));
/** The check as a statement, for a built program. */
module.exports = '(' + needNode + ')(' + wanted[1] + ', ' + wanted[2] + ');';
