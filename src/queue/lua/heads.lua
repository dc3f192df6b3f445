-- ARGV: cluster, the first of some pages, how many. Returns state, ranges of procs ('0-9,12'), … of these pages at one
-- moment, by groups; false if the cluster has too many groups to look into each.
local MOST_GROUPS = 200
local cluster, from, pages = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if not published(cluster) then return {} end
local found = {}
local fields = call('HGETALL', K .. 'c:' .. cluster)
if #fields > 2 * MOST_GROUPS then return false end

local wanted = {}
for page = from, from + pages - 1 do wanted[#wanted + 1] = string.format('%.0f', page) end

for i = 1, #fields, 2 do
  local name = string.match(fields[i], '^#(.*)$')
  if name then
    local ranges, first, last = {}
    local function close()
      if first then ranges[#ranges + 1] = last == first and first or first .. '-' .. last end
    end
    local function seen(low, high)
      if first and low == last + 1 then
        last = high
      else
        close()
        first, last = low, high
      end
    end
    for n, bits in ipairs(call('HMGET', K .. 'g:' .. cluster .. ':' .. name, unpack(wanted))) do
      for at = 1, bits and #bits or 0 do
        local byte, low = string.byte(bits, at), (from + n - 1) * PAGE + 8 * (at - 1)
        if byte == 255 then
          seen(low, low + 7)
        elseif byte ~= 0 then
          for b = 0, 7 do
            if bit.band(byte, BITS[b]) ~= 0 then seen(low + b, low + b) end
          end
        end
      end
    end
    close()
    if #ranges > 0 then
      found[#found + 1], found[#found + 2] = string.match(name, '([^:]*)$'), table.concat(ranges, ',')
    end
  end
end
return found
