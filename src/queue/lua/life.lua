-- ARGV: the server's run id; the number of an earlier life, or ''. Begins a new life if the server's run id has
-- changed. Returns life, run, events, last cluster id; the run of that earlier life and, at its end, its events and
-- last cluster id ('' if not known); the last cluster id when the current life began.
local meta = call('HMGET', K .. 'meta', 'run', 'life', 'cluster')
local life, cluster, events = tonumber(meta[2] or '0'), meta[3] or '0', 0
if call('EXISTS', K .. 'events') == 1 then
  local info = call('XINFO', 'STREAM', K .. 'events')
  for i = 1, #info, 2 do
    if info[i] == 'entries-added' then events = info[i + 1] end
  end
end
if meta[1] ~= ARGV[1] then
  if life > 0 then call('HSET', K .. 'lives', life, meta[1] .. '|' .. string.format('%.0f', events) .. '|' .. cluster) end
  life = life + 1
  call('HSET', K .. 'meta', 'run', ARGV[1], 'life', life)
  call('HDEL', K .. 'lives', life - 1000)
end
local function past(number)
  local text = call('HGET', K .. 'lives', number) or ''
  local run, had, last = string.match(text, '^([^|]*)|(%d+)|(%d+)$')
  return run or '', had or '', last or ''
end
local run, had, last = past(ARGV[2])
local _, _, began = past(life - 1)
return { life, ARGV[1], string.format('%.0f', events), cluster, run, had, last, began }
