from hypothesis import HealthCheck, settings

# Shared, slow machines: how long an example takes says nothing here. Loaded before the tests of this folder are read,
# because `given` takes the profile that is current then.
settings.register_profile("messages", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("messages")
