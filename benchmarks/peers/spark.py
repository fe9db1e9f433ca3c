"""Spark MLlib's LogisticRegression with L-BFGS, its best solver, on four threads.

Each number of iterations starts from the beginning; rows stay in memory. MLlib can standardize
features: here it does not, so that the penalty is that of the other programs.
"""

from __future__ import annotations

from .base import Curve, Data, Found, Judge, timed

NAME = "Spark MLlib, L-BFGS"
THREADS = "4"
HELD = "cached DataFrame in memory"
ITERATIONS = {"spam": (5, 10, 20), "URL-like": (10, 20, 40)}

# regParam: 1 / (C rows), the best of the others' C
GRID = {"spam": [4e-6], "URL-like": [1e-5]}


def run(data: Data) -> Found:
    """Run all fits; reading ends when the rows have been counted."""
    from pyspark import StorageLevel
    from pyspark.ml.classification import LogisticRegression
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[4]")
        .config("spark.driver.memory", "9g")
        .config("spark.driver.maxResultSize", "0")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        text = spark.read.format("libsvm").option("numFeatures", data.features)
        rows = text.load(f"file://{data.train}").replace(-1.0, 0.0, subset=["label"])
        rows = rows.repartition(4).persist(StorageLevel.MEMORY_ONLY)
        reading, _ = timed(rows.count)
        found, judge = Found(spark.version, reading), Judge(data)
        LogisticRegression(maxIter=1).fit(rows)  # compiles what all fits share
        for strength in data.some(GRID[data.name]):
            curve = Curve(f"regParam={strength:g}")
            for count in data.some(list(ITERATIONS[data.name])):
                fit = LogisticRegression(
                    maxIter=count, regParam=strength, standardization=False, tol=0.0
                ).fit
                seconds, model = timed(lambda fit=fit: fit(rows))  # type: ignore[misc]
                loss = judge.of(model.coefficients.toArray(), model.intercept)
                curve.add(count, seconds, loss)
            found.curves.append(curve)
        return found
    finally:
        spark.stop()
