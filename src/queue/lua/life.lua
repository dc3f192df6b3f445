-- ARGV: the server's run id; an earlier life's number, or ''. Begins a new life where the server is another run than before. Answers
-- life, run, events, last cluster id; of that earlier life the run and, at its end, events and last cluster id ('' where it is not
-- known); the last cluster id when the present life began.
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
