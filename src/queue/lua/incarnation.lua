-- ARGV: the server's run id; the number of an earlier incarnation, or ''. Begins a new incarnation if the server's run
-- id has changed. Returns incarnation, run, events, last cluster id; the run of that earlier incarnation and, at its end,
-- its events and last cluster id ('' if not known); the last cluster id when the current incarnation began.
local meta = call('HMGET', K .. 'meta', 'run', 'life', 'cluster')
local incarnation, cluster, events = tonumber(meta[2] or '0'), meta[3] or '0', 0
if call('EXISTS', K .. 'events') == 1 then
  local info = call('XINFO', 'STREAM', K .. 'events')
  for i = 1, #info, 2 do
    if info[i] == 'entries-added' then events = info[i + 1] end
  end
end
if meta[1] ~= ARGV[1] then
  if incarnation > 0 then
    call('HSET', K .. 'lives', incarnation, meta[1] .. '|' .. string.format('%.0f', events) .. '|' .. cluster)
  end
  incarnation = incarnation + 1
  call('HSET', K .. 'meta', 'run', ARGV[1], 'life', incarnation)
  call('HDEL', K .. 'lives', incarnation - 1000)
end
local function past(number)
  local text = call('HGET', K .. 'lives', number) or ''
  local run, had, last = string.match(text, '^([^|]*)|(%d+)|(%d+)$')
  return run or '', had or '', last or ''
end
local run, had, last = past(ARGV[2])
local _, _, began = past(incarnation - 1)
return { incarnation, ARGV[1], string.format('%.0f', events), cluster, run, had, last, began }
