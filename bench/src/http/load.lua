-- The requests that wrk sends. The first argument selects them; `wrk.rs` parses the line printed at the end.
--
--   health      GET /healthz: the cost of HTTP and wrk alone
--   post        jobs with a unique payload of about fifty bytes, the same as on the library's side
--   get FILE    reads the jobs whose ids are the lines of FILE
--   mix FILE N  jobs with idempotency keys and new queues and types, reads, and invalid requests; N names the run
--
-- A last argument key=KEY is an API key for every request.

local threads = 0

function setup(thread)
   thread:set("lane", threads)
   threads = threads + 1
end

local JSON = { ["content-type"] = "application/json" }
local made = 0

local function read_ids(path)
   local ids = {}
   for line in io.lines(path) do
      ids[#ids + 1] = line
   end
   return ids
end

local function number()
   made = made + 1
   return lane * 1000000000 + made
end

local function post()
   local body = '{"jobType":"email.send","payload":{"user":' .. number() .. ',"template":"welcome","locale":"en-GB"}}'
   return wrk.format("POST", "/jobs", JSON, body)
end

local function reads(ids)
   local requests = {}
   for i, id in ipairs(ids) do
      requests[i] = wrk.format("GET", "/jobs/" .. id)
   end
   -- Threads start at different positions, so that they do not read the same job at the same time.
   local at = math.floor(#requests * lane / 2)
   return function()
      at = at % #requests + 1
      return requests[at]
   end
end

local WRONG = {
   { "POST", "/jobs", '{"jobType":' },
   { "POST", "/jobs", '{"jobType":"t","queue":"not a name","nonsense":1}' },
   { "POST", "/jobs/batch", '{"jobs":[]}' },
   { "POST", "/worker/leases/nonsense/complete", "{}" },
   { "GET", "/jobs/nonsense", nil },
   { "PUT", "/nowhere", "{}" },
}

local function mix(ids, run)
   local read = reads(ids)
   return function()
      local n = number()
      local kind = n % 10
      if kind < 6 then
         -- Every tenth job has a new queue and a new type.
         local name = kind == 0 and (run .. "-" .. n) or tostring(n % 1000)
         local body = '{"jobType":"t-' .. name .. '","queue":"q-' .. name .. '","idempotencyKey":"' .. run .. "-" .. n
            .. '","payload":{"user":' .. n .. '},"tags":["bench"],"correlationId":"' .. n .. '"}'
         return wrk.format("POST", "/jobs", JSON, body)
      elseif kind < 9 then
         return read()
      end
      local wrong = WRONG[math.floor(n / 10) % #WRONG + 1]
      return wrk.format(wrong[1], wrong[2], JSON, wrong[3])
   end
end

function init(args)
   local key = args[#args]:match("^key=(.*)$")
   if key then
      JSON["authorization"] = "Bearer " .. key
      wrk.headers["authorization"] = "Bearer " .. key
   end
   if args[1] == "post" then
      request = post
   elseif args[1] == "health" then
      local health = wrk.format("GET", "/healthz")
      request = function()
         return health
      end
   elseif args[1] == "get" then
      request = reads(read_ids(args[2]))
   elseif args[1] == "mix" then
      request = mix(read_ids(args[2]), args[3])
   else
      error("there is no load of this name")
   end
end

function done(summary, latency)
   local errors = summary.errors
   print(string.format("load: %d requests, %d microseconds, %d refused, %d connect, %d read, %d write, %d timeout, p50 %d, p99 %d",
      summary.requests, summary.duration, errors.status, errors.connect, errors.read, errors.write, errors.timeout,
      latency:percentile(50), latency:percentile(99)))
end
