-- ARGV: cluster, token, now (ms), ad as JSON, owner, batch, next proc, total, digest ('' where there is none), procs as JSON
-- ranges, DAG ('' where it is none's), name in it, manager and site of procs that say nothing else, JobUniverse, DAGManJobId. All of a staged cluster
-- becomes visible at once. Answers 1, or 0 where the staging was swept, or 2 where the DAG has a submit of this name. Safe
-- to repeat.
local cluster, token, now = ARGV[1], ARGV[2], ARGV[3]
local summary = K .. 'c:' .. cluster
if call('HGET', summary, 'token') == token then return 1 end
local held = call('HGET', K .. 'staging', cluster)
if not held or string.sub(held, 1, #token + 1) ~= token .. '|' then return 0 end
if ARGV[11] ~= '' then
  if call('HSETNX', K .. 'dn:' .. ARGV[11], ARGV[12], cluster .. '|' .. ARGV[8]) == 0 then return 2 end
  call('HSET', summary, 'dag', ARGV[11])
end
for _, name in ipairs(call('SMEMBERS', K .. 'sg:' .. cluster)) do
  local manager, site, prio, state = string.match(name, '^(%d+):(%d+):(-?%d+):(.*)$')
  admit(cluster, manager, site, prio, state, call('ZCARD', K .. 'g:' .. cluster .. ':' .. name))
end
call('HSET', summary, 'owner', ARGV[5], 'batch', ARGV[6], 'at', string.sub(now, 1, -4), 'next', ARGV[7],
  'total', ARGV[8], 'token', token, 'manager', ARGV[13], 'site', ARGV[14],
  'universe', ARGV[15], 'dagman', ARGV[16])
if ARGV[9] ~= '' then
  call('HSET', summary, 'digest', ARGV[9])
  call('ZADD', K .. 'late', cluster, cluster)
end
call('SET', K .. 'ad:' .. cluster, ARGV[4])
call('ZADD', K .. 'clusters', cluster, cluster)
call('DEL', K .. 'sg:' .. cluster)
call('HDEL', K .. 'staging', cluster)
event(now, 'submitted', '"cluster":' .. cluster .. ',"procs":' .. ARGV[10] .. ',"owner":' .. cjson.encode(ARGV[5]))
return 1
