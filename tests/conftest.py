"""What the test run says about itself."""

import os

from hypothesis import settings

import sparcml
from sparcml import kernels

# What is known of this machine's network must not change what is tested.
os.environ["SPARCML_NETWORK"] = "none"

# A busy machine is not a failure.
settings.register_profile("sparcml", deadline=None)
settings.load_profile("sparcml")


def pytest_report_header(config):
    return f"sparcml {sparcml.__version__}, kernels on {kernels.isa()} of {kernels.isas()}"
