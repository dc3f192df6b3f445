-- ARGV: namespace, key, value, expected version ('' for any). A value is kept as 'version|value'. Answers the new version,
-- or false where it is at another one. One counter for all keys: a version never comes again.
local key = K .. 'kv:' .. ARGV[1]
local known = call('HGET', key, ARGV[2])
local version = known and string.match(known, '^(%d+)|') or '0'
if ARGV[4] ~= '' and ARGV[4] ~= version then return false end
local fresh = call('HINCRBY', K .. 'meta', 'kv', 1)
call('HSET', key, ARGV[2], string.format('%.0f|', fresh) .. ARGV[3])
return fresh
