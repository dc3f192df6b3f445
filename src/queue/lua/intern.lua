-- ARGV: names. Returns their numbers.
local numbers = {}
for i, name in ipairs(ARGV) do
  local n = name == '' and '0' or call('HGET', K .. 'names', name)
  if not n then
    n = string.format('%.0f', call('HLEN', K .. 'names') + 1)
    call('HSET', K .. 'names', name, n)
    call('HSET', K .. 'ids', n, name)
  end
  numbers[i] = n
end
return numbers
