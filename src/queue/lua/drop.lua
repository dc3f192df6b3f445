-- ARGV: cluster, token. Deletes what was staged.
local cluster, token = ARGV[1], ARGV[2]
local held = call('HGET', K .. 'staging', cluster)
if not held or string.sub(held, 1, #token + 1) ~= token .. '|' then return 0 end
for _, name in ipairs(call('SMEMBERS', K .. 'sg:' .. cluster)) do call('UNLINK', K .. 'g:' .. cluster .. ':' .. name) end
call('UNLINK', K .. 'j:' .. cluster, K .. 'sg:' .. cluster)
call('HDEL', K .. 'staging', cluster)
return 1
