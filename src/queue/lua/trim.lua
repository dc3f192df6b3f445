-- Deletes the events that every cursor has passed, except the newest ARGV[1], for readers without a cursor.
local spare = call('XLEN', K .. 'events') - tonumber(ARGV[1])
if spare <= 0 then return 0 end
local least, ms, seq
for _, id in ipairs(call('HVALS', K .. 'cursors')) do
  local m, s = string.match(id, '^(%d+)-?(%d*)$')
  m, s = tonumber(m), tonumber(s) or 0
  if not least or m < ms or (m == ms and s < seq) then least, ms, seq = id, m, s end
end
if least then return call('XTRIM', K .. 'events', 'MINID', '~', least, 'LIMIT', spare) end
return call('XTRIM', K .. 'events', 'MAXLEN', '~', ARGV[1])
