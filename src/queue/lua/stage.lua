-- ARGV: cluster, token, now (ms), then the input of put(). Returns 1, or 0 if the staging was deleted. Idempotent.
local cluster, token = ARGV[1], ARGV[2]
local held = call('HGET', K .. 'staging', cluster)
if not held or string.sub(held, 1, #token + 1) ~= token .. '|' then return 0 end
call('HSET', K .. 'staging', cluster, token .. '|' .. ARGV[3])
put(cluster, 4, function(_, _, _, _, _, name) call('SADD', K .. 'sg:' .. cluster, name) end)
return 1
