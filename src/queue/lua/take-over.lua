-- ARGV: an agent's id, an epoch, a new name of this holder. Returns 1; 0 if this queue has had clusters of another agent, or
-- serves that epoch or a later one.
local meta = call('HMGET', K .. 'meta', 'agent', 'cluster', 'epoch')
if meta[1] ~= ARGV[1] and tonumber(meta[2] or '0') > 0 then return 0 end
if tonumber(meta[3] or '1') >= tonumber(ARGV[2]) then return 0 end
call('HSET', K .. 'meta', 'agent', ARGV[1], 'epoch', ARGV[2], 'holder', ARGV[3])
return 1
