"""What the test run says about itself."""

import sparcml
from sparcml import kernels


def pytest_report_header(config):
    return f"sparcml {sparcml.__version__}, kernels on {kernels.isa()} of {kernels.isas()}"
