-- ARGV: token, now (ms), time before which untouched staging is deleted (ms). Returns a new cluster's id; deletes the
-- staging of submits that died.
for _, cluster in ipairs(call('HKEYS', K .. 'staging')) do
  local touched = string.match(call('HGET', K .. 'staging', cluster), '|(%d+)$')
  if tonumber(touched) < tonumber(ARGV[3]) then
    for _, name in ipairs(call('SMEMBERS', K .. 'sg:' .. cluster)) do call('UNLINK', K .. 'g:' .. cluster .. ':' .. name) end
    call('UNLINK', K .. 'j:' .. cluster, K .. 'sg:' .. cluster)
    call('HDEL', K .. 'staging', cluster)
  end
end
local cluster = string.format('%.0f', call('HINCRBY', K .. 'meta', 'cluster', 1))
call('HSET', K .. 'staging', cluster, ARGV[1] .. '|' .. ARGV[2])
return cluster
