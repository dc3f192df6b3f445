-- ARGV: cluster, now (ms), lease, epoch, expected next proc, new next proc, done ('1'), procs as JSON ranges, JSON list of
-- those of them that are removed, JSON of the attributes which that sets, then the input of put(). Returns 'ok',
-- 'no-such-cluster', 'stale-epoch' or 'conflict|next proc'.
local cluster, now = ARGV[1], ARGV[2]
local summary, unwanted = K .. 'c:' .. cluster, K .. 'u:' .. cluster
local at = call('HGET', summary, 'next')
if not at or not call('ZSCORE', K .. 'late', cluster) then return 'no-such-cluster' end
if stale(ARGV[3], ARGV[4]) then return 'stale-epoch' end
if at ~= ARGV[5] then return 'conflict|' .. at end
-- Somebody may have removed another since they were read.
local removed, marked = cjson.decode(ARGV[9]), 0
for page = math.floor(tonumber(at) / PAGE), math.floor((tonumber(ARGV[6]) - 1) / PAGE) do
  eachIn(page, call('HGET', unwanted, page) or '', function(proc)
    local n = tonumber(proc)
    if n >= tonumber(at) and n < tonumber(ARGV[6]) then marked = marked + 1 end
  end)
end
if marked ~= #removed then return 'conflict|' .. at end
put(cluster, 11, function(manager, site, prio, state, n) admit(cluster, manager, site, prio, state, n) end)
call('HSET', summary, 'next', ARGV[6])
event(now, 'materialized', '"cluster":' .. cluster .. ',"procs":' .. ARGV[8] .. ',"done":' .. (ARGV[7] == '1' and 'true' or 'false'))
if #removed > 0 then
  mark(unwanted, removed, false)
  local tell, tellAll = telling(now)
  local rest = ',"event":"remove","from":"idle","to":"removed","attempt":0,"set":' .. ARGV[10]
  for _, proc in ipairs(removed) do
    tell({ cluster = cluster, proc = proc }, 'transition', rest)
    dagEvent(cluster, now, 'transition', '"job":"' .. cluster .. '.' .. proc .. '"' .. rest)
  end
  tellAll()
end
if ARGV[7] == '1' then
  call('HDEL', summary, 'digest')
  call('HSET', summary, 'total', ARGV[6])
  call('ZREM', K .. 'late', cluster)
  call('DEL', unwanted)
  sweep(cluster)
end
return 'ok'
