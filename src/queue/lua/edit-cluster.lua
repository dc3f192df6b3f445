-- ARGV: cluster, now (ms), JSON {attr: text or null}. Returns 0 if there is no such cluster.
local cluster = ARGV[1]
local ad = call('GET', K .. 'ad:' .. cluster)
if not ad then return 0 end
local shared, set = cjson.decode(ad), cjson.decode(ARGV[3])
for name, value in pairs(set) do
  for known in pairs(shared) do
    if string.lower(known) == string.lower(name) then name = known end
  end
  shared[name] = value ~= cjson.null and value or nil
  if string.lower(name) == 'jobbatchname' then
    local plain = value ~= cjson.null and string.match(value, '^"(.*)"$') or ''
    call('HSET', K .. 'c:' .. cluster, 'batch', (string.gsub(plain, '\\(["\\])', '%1')))
  end
end
call('SET', K .. 'ad:' .. cluster, cjson.encode(shared))
-- The history must write the ad again.
call('HDEL', K .. 'c:' .. cluster, 'hist')
event(ARGV[2], 'cluster-edited', '"cluster":' .. cluster .. ',"set":' .. ARGV[3])
return 1
