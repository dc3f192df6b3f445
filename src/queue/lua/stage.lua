-- ARGV: cluster, token, now (ms), then as put() reads it. Answers 1, or 0 where the staging was swept. Safe to repeat.
local cluster, token = ARGV[1], ARGV[2]
local held = call('HGET', K .. 'staging', cluster)
if not held or string.sub(held, 1, #token + 1) ~= token .. '|' then return 0 end
call('HSET', K .. 'staging', cluster, token .. '|' .. ARGV[3])
put(cluster, 4, function(_, _, _, _, _, name) call('SADD', K .. 'sg:' .. cluster, name) end)
return 1
