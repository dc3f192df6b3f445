-- ARGV: cluster, now (ms), lease, epoch, expected next proc, new next proc, done ('1'), procs as JSON ranges, then the
-- input of put(). Returns 'ok', 'no-such-cluster', 'stale-epoch' or 'conflict|next proc'.
local cluster = ARGV[1]
local summary = K .. 'c:' .. cluster
local at = call('HGET', summary, 'next')
if not at or not call('ZSCORE', K .. 'late', cluster) then return 'no-such-cluster' end
if stale(ARGV[3], ARGV[4]) then return 'stale-epoch' end
if at ~= ARGV[5] then return 'conflict|' .. at end
put(cluster, 9, function(manager, site, prio, state, n) admit(cluster, manager, site, prio, state, n) end)
call('HSET', summary, 'next', ARGV[6])
event(ARGV[2], 'materialized', '"cluster":' .. cluster .. ',"procs":' .. ARGV[8] .. ',"done":' .. (ARGV[7] == '1' and 'true' or 'false'))
if ARGV[7] == '1' then
  call('HDEL', summary, 'digest')
  call('HSET', summary, 'total', ARGV[6])
  call('ZREM', K .. 'late', cluster)
  sweep(cluster)
end
return 'ok'
