-- ARGV: now (ms), cluster, proc, '1' if its cluster is in the queue, manager, site, priority, attempt, own attributes
-- as JSON; if the cluster is not in the queue: ad as JSON, owner, batch, JobUniverse, DAGManJobId. Puts a job that left
-- the queue back, held. Returns 'ok', 'there' if it is already in the queue, 'again' if its cluster appeared or
-- disappeared in the meantime.
local now, cluster, proc = ARGV[1], ARGV[2], ARGV[3]
if call('HEXISTS', K .. 'j:' .. cluster, proc) == 1 then return 'there' end
if published(cluster) ~= (ARGV[4] == '1') then return 'again' end
if ARGV[4] ~= '1' then
  call('HSET', K .. 'c:' .. cluster, 'owner', ARGV[11], 'batch', ARGV[12], 'at', string.sub(now, 1, -4),
    'next', proc + 1, 'total', proc + 1, 'token', '', 'manager', '', 'site', '', 'universe', ARGV[13], 'dagman', ARGV[14])
  call('SET', K .. 'ad:' .. cluster, ARGV[10])
  call('ZADD', K .. 'clusters', cluster, cluster)
else
  local at = tonumber(call('HGET', K .. 'c:' .. cluster, 'next'))
  if at <= tonumber(proc) then call('HSET', K .. 'c:' .. cluster, 'next', proc + 1, 'total', proc + 1) end
end
if ARGV[4] ~= '1' then
  -- An older copy of the queue may not have reached this id yet.
  if tonumber(call('HGET', K .. 'meta', 'cluster') or '0') < tonumber(cluster) then call('HSET', K .. 'meta', 'cluster', cluster) end
end
call('HSET', K .. 'j:' .. cluster, proc, 'held|' .. table.concat({ unpack(ARGV, 5, 8) }, '|') .. '|' ..
  string.sub(now, 1, -4) .. '\n' .. ARGV[9])
mark(K .. 'g:' .. cluster .. ':' .. ARGV[5] .. ':' .. ARGV[6] .. ':' .. ARGV[7] .. ':held', { proc }, true)
admit(cluster, ARGV[5], ARGV[6], ARGV[7], 'held', 1)
event(now, 'submitted', '"cluster":' .. cluster .. ',"procs":[[' .. proc .. ',' .. string.format('%.0f', proc + 1) ..
  ']],"owner":' .. cjson.encode(call('HGET', K .. 'c:' .. cluster, 'owner')))
return 'ok'
