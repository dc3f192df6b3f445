-- ARGV: namespace, key, value, expected version ('' for any). A value is stored as 'version|value'. Returns the new
-- version, or false if the key has another version. All keys share one counter, so versions are never reused.
local key = K .. 'kv:' .. ARGV[1]
local known = call('HGET', key, ARGV[2])
local version = known and string.match(known, '^(%d+)|') or '0'
if ARGV[4] ~= '' and ARGV[4] ~= version then return false end
local fresh = call('HINCRBY', K .. 'meta', 'kv', 1)
call('HSET', key, ARGV[2], string.format('%.0f|', fresh) .. ARGV[3])
return fresh
