-- Deletes the events that every cursor has passed, except about the newest ARGV[1], for readers without a cursor.
local keep, kept = tonumber(ARGV[1]), 0
-- The first entry that stays; ids are compared by number.
local first, ms, seq = '+', math.huge, math.huge
local function earlier(id)
  local m, s = string.match(id, '^(%d+)-?(%d*)')
  m, s = tonumber(m), tonumber(s) or 0
  if m < ms or (m == ms and s < seq) then first, ms, seq = id, m, s end
end
local from = '+'
while kept < keep do
  local some = call('XREVRANGE', K .. 'events', from, '-', 'COUNT', 500)
  for _, entry in ipairs(some) do
    if kept >= keep then break end
    earlier(entry[1])
    -- Without `n`, it is one event.
    kept = kept + tonumber(entry[2][4] or '1')
  end
  if #some < 500 then break end
  from = '(' .. some[#some][1]
end
if kept < keep then return 0 end
for _, id in ipairs(call('HVALS', K .. 'cursors')) do earlier(id) end
if first == '+' then return call('XTRIM', K .. 'events', 'MAXLEN', '~', 0) end
return call('XTRIM', K .. 'events', 'MINID', '~', first)
